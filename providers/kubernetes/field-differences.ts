import { MASKED } from "../literal";
import type { FieldDrift } from "../provider";
import { covers, isItem, isRecord, itemSegment, nameSegment } from "./field-path";
import { isSecret } from "./object-types";
import { isOwnEntry } from "./ownership";
import { parseQuantity } from "./quantity";
import type { LiveObject, ManagedFieldsEntry, Manifest } from "./types";

/** Who has a field that is not as Kindstack applied it, though Kindstack is the field's only manager. */
export const ADMISSION = "admission";

/** What names an object, or is written by the API server alone. */
const NAMING = ["apiVersion", "kind", "status"];
const OF_SERVER = [
  "name",
  "namespace",
  "uid",
  "resourceVersion",
  "generation",
  "creationTimestamp",
  "deletionTimestamp",
  "deletionGracePeriodSeconds",
  "managedFields",
  "selfLink",
];
/** Lists to which the API server adds items of its own. */
const EXTENDED = /\btolerations$/;

/** One manager's fields below a path: a part of its `fieldsV1`; an empty one covers all that is below. */
interface Managed {
  entry: ManagedFieldsEntry;
  fields: Record<string, unknown>;
}

/**
 * The fields of a manifest that are not so in the live object, with both values and who has set them. What the API server
 * only writes otherwise ({@link isSameValue}), and what it or others add, is no difference. Pure.
 */
export function findFieldDrift(manifest: Manifest, live: Manifest, ignored: readonly string[] = []): FieldDrift[] {
  const differences = compare(named(manifest), named(live), "", managedOf(live));
  const counted = differences.filter(({ field }) => !ignored.some((path) => covers(path, field)));
  return isSecret(manifest) ? counted.map(masked) : counted;
}

/** A difference of a Secret, without its values. */
function masked(drift: FieldDrift): FieldDrift {
  if (!/^(data|stringData)\b/.test(drift.field)) return drift;
  return { ...drift, wanted: MASKED, ...("live" in drift && { live: MASKED }) };
}

function managedOf({ metadata }: Manifest): Managed[] {
  return (metadata.managedFields ?? [])
    .filter(({ subresource, fieldsV1 = {} }) => subresource !== "status" && Object.keys(fieldsV1).length > 0)
    .map((entry) => ({ entry, fields: entry.fieldsV1 ?? {} }));
}

/** Those keys of a list's item that it says. */
function keysIn(item: unknown, keys: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(keys.flatMap((key) => (isRecord(item) && !isEmpty(item[key]) ? [[key, item[key]]] : [])));
}

function named({ metadata, ...rest }: Manifest): Record<string, unknown> {
  const without = (value: object, names: readonly string[]) =>
    Object.fromEntries(Object.entries(value).filter(([name]) => !names.includes(name)));
  return { ...without(rest, NAMING), metadata: without(metadata, OF_SERVER) };
}

function compare(wanted: unknown, live: unknown, field: string, managed: readonly Managed[]): FieldDrift[] {
  const different = () => [drift(wanted, live, field, managed)];
  if (isRecord(wanted) && (isRecord(live) || (live === undefined && !isEmpty(wanted)))) {
    if (live === undefined && !isSplit(managed)) return different();
    return Object.entries(wanted).flatMap(([name, value]) =>
      compare(value, live?.[name], field + nameSegment(name, field === ""), below(managed, `f:${name}`)),
    );
  }
  if (isRecord(wanted)) return isEmpty(wanted) ? [] : different();
  if (!Array.isArray(wanted) || wanted.length === 0) {
    return isSameValue(wanted, live, field) ? [] : different();
  }
  const items = Array.isArray(live) ? live : [];
  const keys = keysOf(managed);
  if (keys !== undefined) {
    return wanted.flatMap((item) => {
      const found = items.find((candidate) => isItem(candidate, keysIn(item, keys)));
      const known = found ?? item;
      const place = field + itemSegment(keys, isRecord(known) ? known : {});
      return compare(item, found, place, belowItem(managed, known));
    });
  }
  const isSet = managed.some(({ fields }) => Object.keys(fields).some((key) => key.startsWith("v:")));
  const agree = (item: unknown, other: unknown) => compare(item, other, field, []).length === 0;
  if (isSet || EXTENDED.test(field)) {
    const missing = wanted.filter((item) => !items.some((candidate) => agree(item, candidate)));
    return missing.map((item) => {
      const text = JSON.stringify(item);
      return drift(item, undefined, `${field}[${text}]`, below(managed, `v:${text}`));
    });
  }
  const isSame = items.length === wanted.length && wanted.every((item, index) => agree(item, items[index]));
  return isSame ? [] : different();
}

/**
 * The live values of all fields of a manifest, by their paths; `null` where there is none. A list or a map that is one value to
 * the API server is one field.
 */
export function liveFields(manifest: Manifest, live: LiveObject): [path: string, value: unknown][] {
  return valuesOf(named(manifest), named(live), "", managedOf(live));
}

function valuesOf(wanted: unknown, live: unknown, field: string, managed: readonly Managed[]): [string, unknown][] {
  if (isRecord(wanted) && isSplit(managed) && (isRecord(live) || Object.keys(wanted).length === 0)) {
    return Object.entries(wanted).flatMap(([name, value]) => {
      const part = isRecord(live) ? live[name] : undefined;
      return valuesOf(value, part, field + nameSegment(name, field === ""), below(managed, `f:${name}`));
    });
  }
  const keys = Array.isArray(wanted) && Array.isArray(live) ? keysOf(managed) : undefined;
  if (keys === undefined) return [[field, live ?? null]];
  return (wanted as unknown[]).flatMap((item) => {
    const found = (live as unknown[]).find((candidate) => isItem(candidate, keysIn(item, keys)));
    const known = found ?? item;
    return valuesOf(item, found, field + itemSegment(keys, isRecord(known) ? known : {}), belowItem(managed, known));
  });
}

function drift(wanted: unknown, live: unknown, field: string, managed: readonly Managed[]): FieldDrift {
  const isOurs = managed.some(({ entry }) => isOwnEntry(entry));
  const others = managed.flatMap(({ entry }) => (isOwnEntry(entry) ? [] : [entry.manager || "an unnamed manager"]));
  const by = isOurs ? ADMISSION : [...new Set(others)].join(", ");
  return { field, wanted, ...(live !== undefined && { live }), ...(by !== "" && { by }) };
}

function below(managed: readonly Managed[], key: string): Managed[] {
  return managed.flatMap(({ entry, fields }) => {
    if (isLeaf(fields)) return [{ entry, fields }];
    const child = fields[key] as Managed["fields"] | undefined;
    return child === undefined ? [] : [{ entry, fields: child }];
  });
}

/** A list's item may be known by keys that the manifest leaves out: the server fills them in. */
function belowItem(managed: readonly Managed[], item: unknown): Managed[] {
  return managed.flatMap(({ entry, fields }) => {
    if (isLeaf(fields)) return [{ entry, fields }];
    return Object.entries(fields).flatMap(([key, child]) => {
      if (!key.startsWith("k:")) return [];
      const keys = JSON.parse(key.slice(2)) as Record<string, unknown>;
      return isItem(item, keys) ? [{ entry, fields: child as Managed["fields"] }] : [];
    });
  });
}

/** The fields that tell the items of a list apart; `undefined` for a list that is one value. */
function keysOf(managed: readonly Managed[]): string[] | undefined {
  for (const { fields } of managed) {
    const key = Object.keys(fields).find((name) => name.startsWith("k:"));
    if (key !== undefined) return Object.keys(JSON.parse(key.slice(2)) as object);
  }
  return undefined;
}

/** Whether anyone has parts of a value, so that each part is told by itself. */
function isSplit(managed: readonly Managed[]): boolean {
  return managed.length === 0 || managed.some(({ fields }) => !isLeaf(fields));
}

function isLeaf(fields: Managed["fields"]): boolean {
  return Object.keys(fields).length === 0;
}

/* What the API server writes otherwise than it was given, and means the same: it is no difference. */

/** Quantities are told by their form; these fields hold texts that only look like some. */
const TEXTS = /^(metadata|data|binaryData|stringData)\b|\.(labels|annotations|args|command|env)\b/;

/** Zero, these are chosen by the API server. */
const CHOSEN = /\b(nodePort|healthCheckNodePort|(period|timeout)Seconds|(success|failure)Threshold)$/;

/** Whether a value that is no object and no list, or is empty, is what was wanted. @param field its path */
function isSameValue(wanted: unknown, live: unknown, field: string): boolean {
  if (wanted === live) return true;
  if (isUnset(wanted)) return isEmpty(live) || !TEXTS.test(field);
  if (isEmpty(wanted) && (isEmpty(live) || CHOSEN.test(field))) return true;
  if (/^(data|binaryData)\b|\bcaBundle$/.test(field) && isSameBase64(wanted, live)) return true;
  if (TEXTS.test(field)) return false;
  return isSame(quantityOf, wanted, live) || isSame(durationOf, wanted, live) || isSame(secondOf, wanted, live);
}

/** Whether a value leaves the choice to the API server and to others. */
function isUnset(value: unknown): boolean {
  return value === null || value === undefined || value === "" || (Array.isArray(value) && value.length === 0);
}

/** Whether a value says nothing, so that the API server may leave it out. */
function isEmpty(value: unknown): boolean {
  if (value === null || value === undefined || value === false || value === 0 || value === "") return true;
  if (Array.isArray(value)) return value.length === 0;
  return typeof value === "object" && Object.values(value).every(isEmpty);
}

function isSame(read: (value: unknown) => number | undefined, wanted: unknown, live: unknown): boolean {
  const [a, b] = [read(wanted), read(live)];
  if (a === undefined || b === undefined) return false;
  return Math.abs(a - b) <= 1e-9 * Math.max(Math.abs(a), Math.abs(b));
}

/** `1500m`, `1.5` and `1500e-3` are one quantity. */
function quantityOf(value: unknown): number | undefined {
  const quantity = parseQuantity(value);
  return quantity === undefined ? undefined : Number(quantity);
}

const UNITS: Readonly<Record<string, number>> = { ns: 1e-9, us: 1e-6, µs: 1e-6, ms: 1e-3, s: 1, m: 60, h: 3600 };

/** In seconds: `90s` and `1m30s` are one duration of Go's. */
function durationOf(value: unknown): number | undefined {
  if (typeof value !== "string" || !/^([\d.]+(ns|us|µs|ms|s|m|h))+$/.test(value)) return undefined;
  const parts = [...value.matchAll(/([\d.]+)(ns|us|µs|ms|s|m|h)/g)];
  return parts.reduce((sum, [, digits, unit = ""]) => sum + Number(digits) * (UNITS[unit] ?? 0), 0);
}

/** Times are kept in UTC, to the second. */
function secondOf(value: unknown): number | undefined {
  if (typeof value !== "string" || !/^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d/.test(value)) return undefined;
  const milliseconds = Date.parse(value);
  return Number.isNaN(milliseconds) ? undefined : Math.floor(milliseconds / 1000);
}

function isSameBase64(wanted: unknown, live: unknown): boolean {
  return (
    typeof wanted === "string" && typeof live === "string" && wanted.replace(/\s/g, "") === live.replace(/\s/g, "")
  );
}
