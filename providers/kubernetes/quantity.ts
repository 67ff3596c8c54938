const NANO = 1_000_000_000n;
/** In billionths, by suffix. */
const DECIMAL = Object.fromEntries(
  ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"].map((suffix, index) => [suffix, 1000n ** BigInt(index)]),
);
const BINARY = Object.fromEntries(
  ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].map((suffix, index) => [suffix, NANO << BigInt(10 * index)]),
);
const FORM = /^([+-]?)(\d*)(?:\.(\d*))?(?:([KMGTPE]i|[numkMGTPE])|[eE]([+-]?\d{1,2}))?$/;
/** Longer texts are no quantities of Kubernetes, and take long to read. */
const MAX_LENGTH = 64;

/**
 * Parses a quantity, such as `8`, `100m`, `1.5Gi` or `1e3`. What is finer than a billionth is rounded away from zero, as
 * Kubernetes does.
 *
 * @returns it in billionths, the finest that Kubernetes knows; `undefined` for what is no quantity
 */
export function parseQuantity(quantity: unknown): bigint | undefined {
  const text = typeof quantity === "number" ? String(quantity) : quantity;
  if (typeof text !== "string" || text.length > MAX_LENGTH) return undefined;
  const [match, sign, whole = "", fraction = "", suffix = "", exponent = "0"] = FORM.exec(text) ?? [];
  if (match === undefined || whole + fraction === "") return undefined;
  const places = fraction.length - Number(exponent);
  const scaled = BigInt(whole + fraction) * (DECIMAL[suffix] ?? BINARY[suffix] ?? 0n);
  const divisor = 10n ** BigInt(Math.max(0, places));
  const amount = (scaled * 10n ** BigInt(Math.max(0, -places)) + divisor - 1n) / divisor;
  return sign === "-" ? -amount : amount;
}

/**
 * Writes a quantity, in billionths, as Kubernetes would: with the largest suffix that leaves a whole number. With powers of
 * 1024 where `like`, a quantity of the same resource, is written with them.
 */
export function formatQuantity(quantity: bigint, like: string | number = ""): string {
  if (quantity === 0n) return "0";
  const units = String(like).endsWith("i") && quantity % NANO === 0n ? BINARY : DECIMAL;
  const [suffix, size] = Object.entries(units).findLast(([, size]) => quantity % size === 0n) ?? ["n", 1n];
  return `${quantity / size}${suffix}`;
}
