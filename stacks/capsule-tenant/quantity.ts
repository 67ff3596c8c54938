/*
 * Kubernetes' amounts, exactly: a sum that is off by a rounding would let a tenant exceed its quota, or never reach it.
 */

/** An amount in billionths, the finest that Kubernetes knows. */
export type Amount = bigint;

const NANO = 1_000_000_000n;
const MEBI = NANO << 20n;
const BINARY = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
/** Powers of ten, as exponents. */
const DECIMAL: Readonly<Record<string, number>> = {
  n: -9,
  u: -6,
  m: -3,
  "": 0,
  k: 3,
  M: 6,
  G: 9,
  T: 12,
  P: 15,
  E: 18,
};
const FORM = /^([+-]?)(\d*)(?:\.(\d*))?([KMGTPE]i|[numkMGTPE]|[eE][+-]?\d+)?$/;

/**
 * Parses `8`, `100m`, `1.5Gi`, `1e3`. What is finer than a billionth is rounded away from zero, as Kubernetes does.
 *
 * @throws RangeError when it is not an amount
 */
export function parseAmount(quantity: string | number): Amount {
  const match = FORM.exec(String(quantity));
  const [, sign = "", whole = "", fraction = "", suffix = ""] = match ?? [];
  if (match === null || whole + fraction === "") throw new RangeError(`${quantity} is not an amount`);
  const digits = BigInt(whole + fraction) * NANO;
  const binary = BINARY.indexOf(suffix);
  const exponent = (binary >= 0 ? 0 : (DECIMAL[suffix] ?? Number(suffix.slice(1)))) - fraction.length;
  const scaled = binary > 0 ? digits << BigInt(10 * binary) : digits;
  const amount = exponent >= 0 ? scaled * 10n ** BigInt(exponent) : divideUp(scaled, 10n ** BigInt(-exponent));
  return sign === "-" ? -amount : amount;
}

function divideUp(dividend: bigint, divisor: bigint): bigint {
  return (dividend + divisor - 1n) / divisor;
}

/**
 * Writes an amount as Kubernetes would: with the largest suffix that leaves a whole number. With powers of 1024 where
 * `like`, an amount of the same resource, is written with them.
 */
export function formatAmount(amount: Amount, like: string | number = ""): string {
  if (String(like).endsWith("i") && amount % NANO === 0n) return withSuffix(amount / NANO, 1024n, BINARY);
  if (amount % NANO === 0n) return withSuffix(amount / NANO, 1000n, ["", "k", "M", "G", "T", "P", "E"]);
  return withSuffix(amount, 1000n, ["n", "u", "m"]);
}

function withSuffix(value: bigint, base: bigint, suffixes: readonly string[]): string {
  let index = 0;
  let rest = value;
  while (index < suffixes.length - 1 && rest !== 0n && rest % base === 0n) {
    rest /= base;
    index++;
  }
  return `${rest}${suffixes[index]}`;
}

/**
 * The parts in which an amount of a resource is given out: thousandths of a processor; one of everything else, or 1Mi
 * where the whole is written with powers of 1024, as plain bytes are hard to read.
 */
export function unitOf(resource: string, whole: string | number): Amount {
  if (/(^|\.)cpu$/.test(resource)) return NANO / 1000n;
  return String(whole).endsWith("i") && parseAmount(whole) % MEBI === 0n ? MEBI : NANO;
}
