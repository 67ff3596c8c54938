import Type from "typebox";
import { Compile } from "typebox/compile";
import type { LiveObject } from "../../providers/kubernetes/index";
import { ASK_ANNOTATION_PREFIX } from "./labels";
import { type Amount, formatAmount, parseAmount } from "./quantity";

/*
 * A request that is larger than its namespace's share asks for room: an annotation on the namespace's ResourceQuota says
 * how much, whichever replica balances the tenant. Each process of the operator has an annotation of its own.
 */

/** An ask holds room for so long: longer than its request waits, and until it is counted. */
export const ASK_MS = 5_000;
/** So much may the clocks of replicas differ. What lasts longer was written before a clock was set back. */
const CLOCK_SKEW_MS = 60_000;

/** What requests that wait ask for of one resource. */
export interface Ask {
  /** What the namespace used at the time. */
  used: Amount;
  /** What they add to it together. */
  more: Amount;
  /** When the first of them came, in ms since the epoch. */
  since: number;
  /** Until when it counts, likewise. */
  until: number;
}

const quantity = Type.String({ maxLength: 64 });
const schema = Compile(
  Type.Record(
    Type.String(),
    Type.Object({ used: quantity, more: quantity, since: Type.Number(), until: Type.Number() }),
  ),
);

export function formatAsks(asks: ReadonlyMap<string, Ask>): string {
  const entries = [...asks].map(([resource, { used, more, since, until }]) => {
    return [resource, { used: formatAmount(used), more: formatAmount(more), since, until }];
  });
  return JSON.stringify(Object.fromEntries(entries));
}

/**
 * What the asks on a ResourceQuota amount to.
 *
 * @returns by resource: the `amount` that the namespace needs to have, those that it uses included
 */
export function asksOn(
  quota: LiveObject,
  now = Date.now(),
): Map<string, { amount: Amount; since: number; until: number }> {
  const found = new Map<string, Ask[]>();
  for (const text of askAnnotations(quota).values()) {
    for (const [resource, ask] of parseAsks(text)) {
      if (isInForce(ask, now)) found.set(resource, [...(found.get(resource) ?? []), ask]);
    }
  }
  return new Map(
    [...found].map(([resource, asks]) => {
      // What one process saw used may contain what another one still asks for.
      const used = asks.reduce((least, ask) => (ask.used < least ? ask.used : least), asks[0]?.used ?? 0n);
      const amount = asks.reduce((total, { more }) => total + more, used);
      const since = Math.min(...asks.map((ask) => ask.since));
      return [resource, { amount, since, until: Math.min(...asks.map(({ until }) => until)) }];
    }),
  );
}

/** The annotations of processes that no longer ask for anything. */
export function expiredAsks(quota: LiveObject, now = Date.now()): string[] {
  return [...askAnnotations(quota)]
    .filter(([, text]) => ![...parseAsks(text).values()].some((ask) => isInForce(ask, now)))
    .map(([name]) => name);
}

function askAnnotations({ metadata }: LiveObject): Map<string, string> {
  return new Map(Object.entries(metadata.annotations ?? {}).filter(([name]) => name.startsWith(ASK_ANNOTATION_PREFIX)));
}

/** Nothing when the text is something else. */
function parseAsks(text: string): Map<string, Ask> {
  try {
    const value: unknown = JSON.parse(text);
    if (!schema.Check(value)) return new Map();
    return new Map(
      Object.entries(value).map(([resource, { used, more, since, until }]) => {
        return [resource, { used: parseAmount(used), more: parseAmount(more), since, until }];
      }),
    );
  } catch {
    return new Map();
  }
}

function isInForce({ until }: Ask, now: number): boolean {
  return until > now && until <= now + ASK_MS + CLOCK_SKEW_MS;
}
