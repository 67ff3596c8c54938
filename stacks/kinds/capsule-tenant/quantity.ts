import { parseQuantity } from "../../../providers/kubernetes/index";

/*
 * Kubernetes' amounts, exactly: a sum that is off by a rounding would let a tenant exceed its quota, or never reach it.
 */

/** An amount in billionths, the finest that Kubernetes knows. */
export type Amount = bigint;

/** Amounts of a list, by resource, as Kubernetes writes them. */
export type Amounts = Record<string, string | number>;

/** What may be written as an amount: `200m`, `16Gi`, none below zero. */
export const QUANTITY = "^\\+?([0-9]+(\\.[0-9]*)?|\\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$";

const ONE = parseAmount(1);
const MEBI = parseAmount("1Mi");

export function parseAmount(quantity: string | number): Amount {
  const amount = parseQuantity(quantity);
  if (amount === undefined) throw new RangeError(`${String(quantity).slice(0, 64)} is not an amount`);
  return amount;
}

/**
 * The unit in which an amount of a resource is divided: thousandths of a processor; one of everything else, or 1Mi
 * where the whole is written with powers of 1024, as plain bytes are hard to read.
 */
export function unitOf(resource: string, whole: string | number): Amount {
  if (/(^|\.)cpu$/.test(resource)) return ONE / 1000n;
  return String(whole).endsWith("i") && parseAmount(whole) % MEBI === 0n ? MEBI : ONE;
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
