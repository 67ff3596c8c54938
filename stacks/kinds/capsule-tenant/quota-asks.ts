import Type from "typebox";
import { formatQuantity, type LiveObject } from "../../../providers/kubernetes/index";
import { jsonReader } from "./annotation-json";
import { type Amount, min, parseAmount, QUANTITY } from "./quantity";

/*
 * A request that is larger than its namespace's share asks for room: an annotation on the namespace's ResourceQuota says
 * how much, whichever replica balances the tenant. Each process of the operator has an annotation of its own.
 */

/** Of an annotation on a ResourceQuota, followed by the process that asks: what its waiting requests need. */
export const ASK_ANNOTATION_PREFIX = "ask.kindstack.dev/";

/** Lifetime of an ask: longer than its request waits and is counted. */
export const ASK_MS = 5_000;
/** Maximum clock difference between replicas. A later expiry was written before a clock was set back. */
const CLOCK_SKEW_MS = 60_000;

/** What waiting requests ask for, of one resource. */
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

const quantity = Type.String({ maxLength: 64, pattern: QUANTITY });
const ask = Type.Object({ used: quantity, more: quantity, since: Type.Number(), until: Type.Number() });
const readAsks = jsonReader(Type.Record(Type.String(), ask));

export function formatAsks(asks: ReadonlyMap<string, Ask>): string {
  const entries = [...asks].map(([resource, { used, more, ...times }]) => {
    return [resource, { used: formatQuantity(used), more: formatQuantity(more), ...times }];
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
  const found = new Map<string, Ask>();
  for (const [resource, ask] of asksByAnnotation(quota, now).flatMap(({ asks }) => asks)) {
    const { used, more, since, until } = found.get(resource) ?? { ...ask, more: 0n };
    found.set(resource, {
      // What one process saw used may contain what another one still asks for.
      used: min(used, ask.used),
      more: more + ask.more,
      since: Math.min(since, ask.since),
      until: Math.min(until, ask.until),
    });
  }
  return new Map(
    [...found].map(([resource, { used, more, ...times }]) => [resource, { amount: used + more, ...times }]),
  );
}

/** The annotations of processes that no longer ask for anything. */
export function expiredAsks(quota: LiveObject): string[] {
  const expired = asksByAnnotation(quota, Date.now()).filter(({ asks }) => asks.length === 0);
  return expired.map(({ annotation }) => annotation);
}

/** What is asked for by each annotation and still counts. */
function asksByAnnotation({ metadata }: LiveObject, now: number) {
  return Object.entries(metadata.annotations ?? {})
    .filter(([annotation]) => annotation.startsWith(ASK_ANNOTATION_PREFIX))
    .map(([annotation, text]) => ({
      annotation,
      asks: Object.entries(readAsks(text) ?? {})
        .filter(([, { until }]) => until > now && until <= now + ASK_MS + CLOCK_SKEW_MS)
        .map(([resource, { used, more, ...times }]): [string, Ask] => {
          return [resource, { used: parseAmount(used), more: parseAmount(more), ...times }];
        }),
    }));
}
