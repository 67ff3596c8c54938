import { isDeepStrictEqual } from "node:util";
import { isInternal } from "../../providers/dynamic";
import type { LiveObject, Manifest } from "../../providers/kubernetes/client";
import { isRecord } from "../../providers/kubernetes/field-path";
import { isObjectOutputs } from "../../providers/kubernetes/object";
import { isSecret } from "../../providers/kubernetes/object-types";
import { withoutOwnReferences } from "../../providers/kubernetes/owner-references";
import { CREATED_ANNOTATION, OWNER_ANNOTATION, OWNER_UID_LABEL } from "../../providers/kubernetes/ownership";
import { holds, MASKED } from "../../providers/literal";
import type { Properties } from "../../providers/provider";
import { driftIn } from "../automation/event-log";
import type { PlannedChange } from "../automation/planned-changes";
import type { FieldChange } from "./resource-plan";

/** Properties that say nothing about what a resource is. */
const HIDDEN: readonly string[] = ["owner", "replaceOnChanges", "deletedWith"];

/**
 * The fields that an update or a replacement would change: what the program gives, compared with what the state has.
 *
 * @param live the Kubernetes object as it is, if it is known: after a refresh it tells what has drifted
 */
export function changedFields({ old, inputs = {}, differsAt }: PlannedChange, live?: LiveObject): FieldChange[] {
  if (old === undefined) return [];
  const recorded = isObjectOutputs(old.outputs) ? withoutOwnReferences(old.outputs) : old.outputs;
  let fields = Object.keys(inputs)
    .filter((name) => !HIDDEN.includes(name) && !isInternal(name))
    .flatMap((name) => {
      // Outputs, since a refresh puts there what it found.
      const before = name in recorded ? recorded[name] : old.inputs[name];
      return compare(before, inputs[name], name === "manifest" ? [] : [name]);
    });
  if (old.outputs.drifted === true && live !== undefined) {
    // Only what the manifest names: everything else in a live object belongs to the server or another manager.
    const drifted = driftIn(old.outputs).map(({ field }) => field);
    const named = compareWithLive(live, inputs.manifest as Manifest).filter(
      ({ path, after }) => after !== MASKED || drifted.includes(formatPath(path)),
    );
    // What is alive takes the place of what the state has.
    const byPath = new Map([...fields, ...named].map((difference) => [formatPath(difference.path), difference]));
    fields = [...byPath.values()];
  }
  return shown([...fields, ...secretsThatDiffer(old.outputs, inputs, differsAt)], inputs.manifest);
}

/** Which secrets differ, though both sides of a preview read `[secret]`. */
function secretsThatDiffer(
  before: unknown,
  after: unknown,
  differsAt: PlannedChange["differsAt"],
  path: Difference["path"] = [],
): Difference[] {
  if (before === MASKED && after === MASKED && differsAt?.(path)) {
    return [{ path: path[0] === "manifest" ? path.slice(1) : path, before, after }];
  }
  if (typeof before !== "object" || typeof after !== "object" || before === null || after === null) return [];
  const sides = [before, after] as [Properties, Properties];
  return Object.keys(after).flatMap((name) =>
    secretsThatDiffer(sides[0][name], sides[1][name], differsAt, [...path, Array.isArray(after) ? Number(name) : name]),
  );
}

/** The fields of an object that exists already which its adoption changes. */
export function adoptedFields(live: LiveObject, manifest: Manifest): FieldChange[] {
  return shown(compareWithLive(live, manifest), manifest);
}

/** The values of what is created: those that the program gives; of a Kubernetes object, its manifest's. */
export function createdFields(inputs: Readonly<Record<string, unknown>>): FieldChange[] {
  const { manifest, initial } = inputs;
  if (isRecord(manifest)) {
    const given = [...leaves(manifest, []), ...leaves(initial, ["initial"])];
    return shown(
      given.filter(({ path }) => !SAID.test(formatPath(path))),
      manifest,
    );
  }
  const given = Object.keys(inputs).filter((name) => !HIDDEN.includes(name) && !isInternal(name));
  return shown(
    given.flatMap((name) => leaves(inputs[name], [name])),
    undefined,
  );
}

/** What the report says of a Kubernetes object without its fields. */
const SAID = /^(initial\.(fieldManager|manifest\.))?(apiVersion$|kind$|metadata\.(name$|ownerReferences\b)|$)/;

function leaves(after: unknown, path: Difference["path"]): Difference[] {
  const parts: [string | number, unknown][] = Array.isArray(after)
    ? after.map((item, index) => [index, item])
    : isRecord(after)
      ? Object.entries(after)
      : [];
  if (parts.length === 0) return after === undefined ? [] : [{ path, after }];
  return parts.flatMap(([name, part]) => leaves(part, [...path, name]));
}

/** What a program gives otherwise than before, whatever there is. */
export function givenFields({ old, ...change }: PlannedChange): FieldChange[] {
  return changedFields({ ...change, ...(old && { old: { ...old, outputs: old.inputs } }) });
}

/** What an apply changes in a live object, by the answer to its dry run; without what only records the apply. */
export function appliedFields(live: LiveObject, applied: LiveObject): FieldChange[] {
  return shown(compare(withoutRecords(live), withoutRecords(applied), []), applied);
}

/** What a manifest names. References that are not among its own are others', or keep a Pod from the garbage collector. */
function compareWithLive(live: LiveObject, manifest: Manifest): Difference[] {
  const own = manifest.metadata?.ownerReferences ?? [];
  if (own.length === 0) return compare(live, manifest, [], "named");
  const ownerReferences = (live.metadata.ownerReferences ?? []).filter(({ uid }) => own.some((one) => one.uid === uid));
  return compare({ ...live, metadata: { ...live.metadata, ownerReferences } }, manifest, [], "named");
}

const RECORDS: readonly string[] = [OWNER_UID_LABEL, OWNER_ANNOTATION, CREATED_ANNOTATION];

function withoutRecords({ metadata, status: _, ...fields }: LiveObject): object {
  const { labels = {}, annotations = {}, ownerReferences = [], finalizers } = metadata;
  const others = (texts: Readonly<Record<string, string>>) =>
    Object.fromEntries(Object.entries(texts).filter(([key]) => !RECORDS.includes(key)));
  const references = ownerReferences.filter(({ uid }) => uid !== labels[OWNER_UID_LABEL]);
  const kept = { labels: others(labels), annotations: others(annotations), ownerReferences: references, finalizers };
  return { ...fields, metadata: kept };
}

function shown(fields: readonly Difference[], manifest: unknown): FieldChange[] {
  const hidden: unknown[] = isRecord(manifest) && isSecret(manifest as Manifest) ? ["data", "stringData"] : [];
  // What a secret was, or is in the cluster, may be one as well.
  const isOfSecret = (sides: object) => Object.keys(sides).length > 1 && holds(sides, MASKED);
  return fields.map(({ path, ...values }) => ({
    path: formatPath(path),
    ...(hidden.includes(path[0] === "initial" ? path[2] : path[0]) || isOfSecret(values)
      ? Object.fromEntries(Object.keys(values).map((side) => [side, MASKED]))
      : values),
  }));
}

/** The paths in which two values differ. */
export function changedPaths(before: unknown, after: unknown): string[] {
  return changedValues(before, after).map(({ path }) => path);
}

/** The same, with both values. */
export function changedValues(before: unknown, after: unknown): FieldChange[] {
  return compare(before, after, []).map(({ path, ...values }) => ({ path: formatPath(path), ...values }));
}

interface Difference extends Pick<FieldChange, "before" | "after"> {
  /** Names of fields, and indexes in lists. */
  path: (string | number)[];
}

/** @param extent with `named`, a field counts only if `after` has it */
function compare(
  before: unknown,
  after: unknown,
  path: Difference["path"],
  extent: "all" | "named" = "all",
): Difference[] {
  if (isDeepStrictEqual(before, after)) return [];
  if (isRecord(before) && isRecord(after)) {
    const names = new Set([...(extent === "all" ? Object.keys(before) : []), ...Object.keys(after)]);
    return [...names].flatMap((name) => compare(before[name], after[name], [...path, name], extent));
  }
  if (Array.isArray(before) && Array.isArray(after)) {
    const isSameLength = before.length === after.length;
    if (isSameLength && (extent === "named" || before.every(isRecord))) {
      return before.flatMap((item, index) => compare(item, after[index], [...path, index], extent));
    }
    if ([...before, ...after].every(isRecord)) {
      return pairItems(before, after).flatMap(([index, was, is]) => compare(was, is, [...path, index], extent));
    }
  }
  return [{ path, ...(before !== undefined && { before }), ...(after !== undefined && { after }) }];
}

type Items = readonly Properties[];
type Pair = [index: number, before: Properties | undefined, after: Properties | undefined];

/** The differences of two lists of objects. Items are paired by their names; without names, by equal items at the start and the end. */
function pairItems(before: Items, after: Items): Pair[] {
  if ([before, after].every(haveNames)) {
    const find = (items: Items, { name }: Properties) => items.find((item) => item.name === name);
    const kept = after.map((item, index): Pair => [index, find(before, item), item]);
    const all = before.map((item, index): Pair => [index, item, find(after, item)]);
    return [...kept, ...all.filter(([, , successor]) => successor === undefined)];
  }
  const start = commonStart(before, after);
  const rest = [before.slice(start), after.slice(start)] as const;
  const end = commonStart(rest[0].toReversed(), rest[1].toReversed());
  const [gone, come] = [rest[0].slice(0, rest[0].length - end), rest[1].slice(0, rest[1].length - end)];
  const places = Array.from({ length: Math.max(gone.length, come.length) }, (_, place) => place);
  return places.map((place) => [start + place, gone[place], come[place]]);
}

/** Whether each item has a name of its own. */
function haveNames(items: Items): boolean {
  const names = new Set(items.map(({ name }) => name));
  return names.size === items.length && !names.has(undefined);
}

function commonStart(a: Items, b: Items): number {
  const different = a.findIndex((item, index) => !isDeepStrictEqual(item, b[index]));
  return different === -1 ? a.length : different;
}

/** `spec.containers[0].env`, `data["8080"]` */
function formatPath(path: Difference["path"]): string {
  return path
    .map((part, index) => {
      if (!/^[a-z_][\w-]*$/i.test(String(part))) return `[${JSON.stringify(part)}]`;
      return index === 0 ? part : `.${part}`;
    })
    .join("");
}
