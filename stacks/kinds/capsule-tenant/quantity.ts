/*
 * Kubernetes' amounts, exactly: a sum that is off by a rounding would let a tenant exceed its quota, or never reach it.
 */

/** An amount in billionths, the finest that Kubernetes knows. */
export type Amount = bigint;

/** Amounts of a list, by resource, as Kubernetes writes them. */
export type Amounts = Record<string, string | number>;

/** What may be written as an amount: `200m`, `16Gi`, none below zero. */
export const QUANTITY = "^\\+?([0-9]+(\\.[0-9]*)?|\\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$";

const NANO = 1_000_000_000n;
const DECIMAL = Object.fromEntries(
  ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"].map((suffix, i) => [suffix, 1000n ** BigInt(i)]),
);
const BINARY = Object.fromEntries(
  ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].map((suffix, i) => [suffix, NANO << BigInt(10 * i)]),
);
const MEBI = NANO << 20n;
const FORM = /^([+-]?)(\d*)(?:\.(\d*))?(?:([KMGTPE]i|[numkMGTPE])|[eE]([+-]?\d{1,2}))?$/;
/** Longer texts are no amounts of Kubernetes, and take long to read. */
const MAX_LENGTH = 64;

/**
 * Parses `8`, `100m`, `1.5Gi`, `1e3`. What is finer than a billionth is rounded away from zero, as Kubernetes does.
 *
 * @throws RangeError when it is not an amount
 */
export function parseAmount(quantity: string | number): Amount {
  const [match, sign, whole = "", fraction = "", suffix = "", exponent = "0"] = FORM.exec(String(quantity)) ?? [];
  if (match === undefined || match.length > MAX_LENGTH || whole + fraction === "") {
    throw new RangeError(`${String(quantity).slice(0, MAX_LENGTH)} is not an amount`);
  }
  const places = fraction.length - Number(exponent);
  const scaled = BigInt(whole + fraction) * (DECIMAL[suffix] ?? BINARY[suffix] ?? 0n);
  const divisor = 10n ** BigInt(Math.max(0, places));
  const amount = (scaled * 10n ** BigInt(Math.max(0, -places)) + divisor - 1n) / divisor;
  return sign === "-" ? -amount : amount;
}

/**
 * Writes an amount as Kubernetes would: with the largest suffix that leaves a whole number. With powers of 1024 where
 * `like`, an amount of the same resource, is written with them.
 */
export function formatAmount(amount: Amount, like: string | number = ""): string {
  if (amount === 0n) return "0";
  const suffixes = String(like).endsWith("i") && amount % NANO === 0n ? BINARY : DECIMAL;
  const [suffix, size] = Object.entries(suffixes).findLast(([, size]) => amount % size === 0n) ?? ["n", 1n];
  return `${amount / size}${suffix}`;
}

/**
 * The unit in which an amount of a resource is divided: thousandths of a processor; one of everything else, or 1Mi
 * where the whole is written with powers of 1024, as plain bytes are hard to read.
 */
export function unitOf(resource: string, whole: string | number): Amount {
  if (/(^|\.)cpu$/.test(resource)) return NANO / 1000n;
  return String(whole).endsWith("i") && parseAmount(whole) % MEBI === 0n ? MEBI : NANO;
}

export function sum(amounts: readonly Amount[]): Amount {
  return amounts.reduce((total, amount) => total + amount, 0n);
}

export function max(first: Amount, ...others: Amount[]): Amount {
  // biome-ignore lint/complexity/useMathMinMax: Math.max refuses a bigint
  return others.reduce((a, b) => (a > b ? a : b), first);
}

export function min(first: Amount, ...others: Amount[]): Amount {
  // biome-ignore lint/complexity/useMathMinMax: Math.min refuses a bigint
  return others.reduce((a, b) => (a < b ? a : b), first);
}
