import { type Amount, max, min, sum } from "./quantity";

/** What one namespace has of one resource, of one item of the tenant's quotas. */
export interface Slot {
  /** What is used, by the API server's count; `undefined` as long as it has not counted. */
  used: Amount | undefined;
  /** What the ResourceQuota says may be used; `undefined` when it says nothing: no limit. */
  granted: Amount | undefined;
  /** What the API server holds the namespace to; it follows `granted` a moment later. */
  enforced: Amount | undefined;
  /** How much requests that wait need it to have in all, and since when. */
  asked?: { amount: Amount; since: number } | undefined;
}

/**
 * What each namespace is to be granted now, so that all of them together cannot use more than `hard`.
 *
 * Each is to get what it uses, what it asks for as far as that is left, the earliest first, and an equal part of the
 * rest. A namespace that gets less than it has is lowered at once; one that gets more is raised only out of what is free
 * for certain: the lower grant of another counts when the API server is seen to enforce it. So the sum of what *can* be
 * used never rises above `hard`, whatever is created meanwhile; the raise follows in a later round.
 *
 * As long as everybody has what it asks for and at least half a share in hand, none is lowered: each
 * change makes the API server count again. What is free all the same, such as the grant of a namespace that has gone, is
 * given out, so that all grants add up to `hard`. When nothing is left, each is granted what it uses.
 */
export function grants(hard: Amount, slots: readonly Slot[], unit: Amount): Amount[] {
  const reachable = sum(slots.map(reach));
  const targets = targetsOf(hard, slots, unit);
  const isSettled = reachable <= hard && slots.every((slot, index) => isContent(slot, targets[index] as Amount));
  // What has not been counted may be anything: no share grows until it is.
  let spare = slots.some(({ used }) => used === undefined) ? 0n : max(0n, hard - reachable);
  return slots.map((slot, index) => {
    const target = targets[index] as Amount;
    if (slot.granted !== undefined && target <= slot.granted) return isSettled ? slot.granted : target;
    const floor = reach(slot);
    const wanted = max(0n, target - floor);
    // A later round completes a raise that is cut, unless this one gives out all that is free.
    const raise = wanted <= spare ? wanted : isSettled ? spare : wholeUnits(spare, unit);
    spare -= raise;
    return min(target, floor + raise);
  });
}

/** The most that a namespace can use with its present grant. */
function reach({ used = 0n, granted = 0n, enforced = 0n }: Slot): Amount {
  return max(used, granted, enforced);
}

/** What is used, what is asked for, and an equal share of the rest; what cannot be shared goes to those who use most. */
function targetsOf(hard: Amount, slots: readonly Slot[], unit: Amount): Amount[] {
  const targets = slots.map(({ used = 0n, asked }) => ({ used, asked, target: used }));
  let left = max(0n, hard - sum(targets.map(({ used }) => used)));
  const give = (to: { target: Amount }, amount: Amount) => {
    const part = max(0n, min(amount, left));
    to.target += part;
    left -= part;
  };
  const byTime = [...targets].sort((a, b) => (a.asked?.since ?? 0) - (b.asked?.since ?? 0));
  for (const slot of byTime) give(slot, (slot.asked?.amount ?? 0n) - slot.used);
  const share = wholeUnits(left / BigInt(Math.max(1, slots.length)), unit);
  for (const slot of targets) give(slot, share);
  for (const slot of [...targets].sort((a, b) => Number(b.used - a.used))) give(slot, unit);
  return targets.map(({ target }) => target);
}

/** Whether a namespace has what it asks for, as far as it can, and at least half of what it should have in hand. */
function isContent({ used, granted, asked }: Slot, target: Amount): boolean {
  if (used === undefined || granted === undefined) return granted !== undefined && used === undefined;
  return granted >= min(asked?.amount ?? 0n, target) && 2n * (granted - used) >= target - used;
}

function wholeUnits(amount: Amount, unit: Amount): Amount {
  return amount - (amount % unit);
}
