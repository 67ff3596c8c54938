import { parseQuantity } from "./quantity";

/*
 * What the API server writes otherwise than it was given, and means the same: it is no difference.
 */

/** Quantities are told by their form; these fields hold texts that only look like some. */
const TEXTS = /^(metadata|data|binaryData|stringData)\b|\.(labels|annotations|args|command|env)\b/;

/** Zero, these are chosen by the API server. */
const CHOSEN = /\b(nodePort|healthCheckNodePort|(period|timeout)Seconds|(success|failure)Threshold)$/;

/** Whether a value that is no object and no list, or is empty, is what was wanted. @param field its path */
export function isSameValue(wanted: unknown, live: unknown, field: string): boolean {
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
export function isEmpty(value: unknown): boolean {
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
