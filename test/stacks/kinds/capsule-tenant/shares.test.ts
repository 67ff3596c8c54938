import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { max, sum } from "../../../../stacks/kinds/capsule-tenant/quantity";
import { grants, type Slot } from "../../../../stacks/kinds/capsule-tenant/shares";

/** Whole numbers, which read better: the unit is 1. */
const slot = (used?: number, granted?: number, enforced = granted): Slot => {
  const amount = (value: number | undefined) => (value === undefined ? undefined : BigInt(value));
  return { used: amount(used), granted: amount(granted), enforced: amount(enforced) };
};
const granted = (hard: number, ...slots: Slot[]) => grants(BigInt(hard), slots, 1n).map(Number);

describe("the shares of a tenant's namespaces", () => {
  it("are equal at first, and what cannot be shared is not lost", () => {
    expect(granted(10, slot(0, 0), slot(0, 0), slot(0, 0))).toEqual([4, 3, 3]);
  });

  it("are lowered before anyone's is raised: what the API server does not enforce yet is not given away", () => {
    expect(granted(10, slot(4, 4), slot(0, 3), slot(0, 3))).toEqual([4, 2, 2]);
    expect(granted(10, slot(4, 4), slot(0, 2, 3), slot(0, 2, 3))).toEqual([4, 2, 2]);
    expect(granted(10, slot(4, 4), slot(0, 2, 2), slot(0, 2, 3))).toEqual([5, 2, 2]);
  });

  it("stay as they are while everybody has half of it in hand", () => {
    expect(granted(10, slot(2, 4), slot(1, 3), slot(0, 3))).toEqual([4, 3, 3]);
  });

  it("are raised by what is free all the same: the rest of a raise that was cut, the share of a namespace that has gone", () => {
    expect(granted(8_000, slot(0, 2_667), slot(0, 2_667), slot(0, 1_333))).toEqual([2_667, 2_667, 2_666]);
    expect(granted(8_000, slot(0, 2_667), slot(0, 2_667))).toEqual([4_000, 4_000]);
    expect(granted(10, slot(2, 6), slot(1, 2))).toEqual([6, 4]);
  });

  it("are what each uses when nothing is left, or less than nothing", () => {
    expect(granted(6, slot(4, 5), slot(2, 3), slot(0, 1))).toEqual([4, 2, 0]);
    expect(granted(5, slot(4, 5), slot(2, 3), slot(0, 1))).toEqual([4, 2, 0]);
  });

  it("go to those who use most when there are less than namespaces", () => {
    expect(granted(10, slot(1, 1), slot(7, 7), slot(0, 0))).toEqual([2, 8, 0]);
  });

  it("are not raised as long as the use of one has not been counted", () => {
    expect(granted(10, slot(2, 2), slot(undefined, 0, undefined))).toEqual([2, 0]);
  });

  describe("with requests that wait", () => {
    const asking = (of: Slot, amount: number, since = 1): Slot => ({ ...of, asked: { amount: BigInt(amount), since } });

    it("are lowered elsewhere and then raised here, until what is asked for is there", () => {
      expect(granted(10, asking(slot(0, 5), 8), slot(0, 5))).toEqual([5, 1]);
      expect(granted(10, asking(slot(0, 5), 8), slot(0, 1, 5))).toEqual([5, 1]);
      expect(granted(10, asking(slot(0, 5), 8), slot(0, 1))).toEqual([9, 1]);
      expect(granted(10, asking(slot(0, 9), 8), slot(0, 1))).toEqual([9, 1]);
    });

    it("take nothing that is used, and no more than is left", () => {
      expect(granted(10, asking(slot(0, 5), 8), slot(4, 5))).toEqual([5, 4]);
      expect(granted(10, asking(slot(0, 5), 8), slot(4, 4))).toEqual([6, 4]);
    });

    it("give the last unit to the one that asked first", () => {
      expect(granted(10, asking(slot(5, 6), 6, 2), asking(slot(4, 4), 5, 1))).toEqual([5, 4]);
      expect(granted(10, asking(slot(5, 5), 6, 2), asking(slot(4, 4), 5, 1))).toEqual([5, 5]);
    });

    it("meet an ask that is smaller than the unit of shares", () => {
      const hard = 10n * 1024n + 1n;
      expect(grants(hard, [{ ...asking(slot(0, 0), Number(hard)) }, slot(0, 0)], 1024n)).toEqual([hard, 0n]);
    });
  });

  /** A cluster in which anything may happen between any two steps. */
  type Step =
    | { type: "use"; index: number; amount: number }
    | { type: "free"; index: number; amount: number }
    | { type: "ask"; index: number; amount: number; since: number }
    | { type: "enforce"; index: number }
    | { type: "balance"; stale: boolean };
  const index = fc.nat(3);
  const amount = fc.integer({ min: 1, max: 9 });
  const step: fc.Arbitrary<Step> = fc.oneof(
    fc.record({ type: fc.constant("use" as const), index, amount }),
    fc.record({ type: fc.constant("free" as const), index, amount }),
    fc.record({ type: fc.constant("ask" as const), index, amount: fc.nat(50), since: fc.nat(3) }),
    fc.record({ type: fc.constant("enforce" as const), index }),
    fc.record({ type: fc.constant("balance" as const), stale: fc.boolean() }),
  );

  type NamespaceQuota = { used: bigint; granted: bigint; enforced: bigint; asked?: { amount: bigint; since: number } };

  /** Rounds until nothing changes any more, all of it enforced after each. */
  function balance(hard: number, quotas: NamespaceQuota[]): number {
    for (let round = 0; round < 10; round++) {
      const next = grants(BigInt(hard), quotas, 1n);
      if (next.every((amount, at) => amount === quotas[at]?.granted)) return round;
      for (const [at, amount] of next.entries()) (quotas[at] as NamespaceQuota).granted = amount;
      for (const namespace of quotas) namespace.enforced = namespace.granted;
    }
    return Number.POSITIVE_INFINITY;
  }

  it("meet an ask for what is left within three rounds, and come to rest; and again when it is used and dropped", () => {
    const uses = fc.array(fc.nat(10), { minLength: 1, maxLength: 5 });
    fc.assert(
      fc.property(uses, fc.nat(60), fc.nat(4), fc.nat(60), fc.nat(4), (uses, left, who, more, rival) => {
        const hard = uses.reduce((sum, use) => sum + use, left);
        const quotas: NamespaceQuota[] = uses.map((use) => ({
          used: BigInt(use),
          granted: BigInt(use),
          enforced: BigInt(use),
        }));
        balance(hard, quotas);
        const asker = quotas[who % quotas.length] as NamespaceQuota;
        const other = quotas[rival % quotas.length] as NamespaceQuota;
        const amount = asker.used + BigInt(Math.min(more, left));
        other.asked = { amount: other.used + 5n, since: 2 };
        asker.asked = { amount, since: 1 };
        expect(balance(hard, quotas)).toBeLessThanOrEqual(3);
        expect(asker.enforced).toBeGreaterThanOrEqual(amount);
        asker.used = amount;
        for (const namespace of quotas) delete namespace.asked;
        expect(balance(hard, quotas)).toBeLessThanOrEqual(3);
      }),
      { seed: 5, numRuns: 2_000 },
    );
  });

  it("never let the namespaces use more than the whole, whatever is used, freed, enforced and seen late", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 40 }), fc.array(step, { maxLength: 60, size: "max" }), (hard, steps) => {
        const quotas: NamespaceQuota[] = Array.from({ length: 4 }, () => ({ used: 0n, granted: 0n, enforced: 0n }));
        let seen = quotas.map((namespace) => ({ ...namespace }));
        for (const event of steps) {
          if (event.type === "balance") {
            // What was granted is known at once, it is our own; what is used and enforced may be seen late.
            if (!event.stale) seen = quotas.map((namespace) => ({ ...namespace }));
            for (const [at, amount] of grants(BigInt(hard), seen, 1n).entries()) {
              (quotas[at] as Slot).granted = amount;
              (seen[at] as Slot).granted = amount;
            }
            continue;
          }
          const namespace = quotas[event.index] as NamespaceQuota;
          if (event.type === "ask") namespace.asked = { amount: BigInt(event.amount), since: event.since };
          else if (event.type === "enforce") namespace.enforced = namespace.granted;
          else if (event.type === "free") namespace.used -= BigInt(Math.min(Number(namespace.used), event.amount));
          else if (namespace.used + BigInt(event.amount) <= namespace.enforced) namespace.used += BigInt(event.amount);
          expect(quotas.reduce((sum, { used }) => sum + used, 0n)).toBeLessThanOrEqual(BigInt(hard));
        }
      }),
      { seed: 5, numRuns: 2_000 },
    );
  });

  it("add up to the whole soon after namespaces came and went at any moment, and never to more", () => {
    const what = fc.constantFrom("create", "delete", "count", "enforce", "use", "free", "balance");
    const event = fc.record({ what, at: fc.nat(9), amount });
    fc.assert(
      fc.property(
        fc.nat(60),
        fc.integer({ min: 1, max: 3 }),
        fc.array(event, { maxLength: 60, size: "max" }),
        (whole, unit, events) => {
          const hard = BigInt(whole);
          let present: (NamespaceQuota & { isCounted: boolean })[] = [];
          const balanceOnce = () => {
            const slots = present.map(({ isCounted, used, ...slot }) => ({
              ...slot,
              used: isCounted ? used : undefined,
            }));
            for (const [at, amount] of grants(hard, slots, BigInt(unit)).entries())
              (present[at] as Slot).granted = amount;
          };
          for (const { what, at, amount } of events) {
            const one = present[at % present.length];
            const more = BigInt(amount);
            if (what === "create") present.push({ used: 0n, granted: 0n, enforced: 0n, isCounted: false });
            else if (what === "balance") balanceOnce();
            else if (what === "delete") present = present.filter((other) => other !== one);
            else if (one !== undefined && what === "count") one.isCounted = true;
            else if (one !== undefined && what === "enforce") one.enforced = one.granted;
            else if (one !== undefined && what === "free") one.used -= more < one.used ? more : one.used;
            else if (one?.isCounted && one.used + more <= one.enforced) one.used += more;
            const reachable = present.map(({ used, granted, enforced }) => max(used, granted, enforced));
            expect(sum(reachable)).toBeLessThanOrEqual(hard);
          }
          for (let round = 0; round < 4; round++) {
            for (const namespace of present) Object.assign(namespace, { isCounted: true, enforced: namespace.granted });
            balanceOnce();
          }
          if (present.length > 0) expect(sum(present.map(({ granted }) => granted))).toBe(hard);
        },
      ),
      { seed: 5, numRuns: 5_000 },
    );
  });

  it("come to rest within a few rounds, and then one that keeps asking can use all that others do not", () => {
    fc.assert(
      fc.property(fc.integer({ min: 6, max: 60 }), fc.integer({ min: 1, max: 6 }), fc.nat(5), (hard, count, who) => {
        const quotas = Array.from({ length: count }, () => ({ used: 0n, granted: 0n, enforced: 0n }));
        const eager = quotas[who % count] as (typeof quotas)[number];
        for (let round = 0; round < 4 * hard + 8; round++) {
          const next = grants(BigInt(hard), quotas, 1n);
          for (const [at, amount] of next.entries()) (quotas[at] as Slot).granted = amount;
          for (const namespace of quotas) namespace.enforced = namespace.granted;
          if (eager.used < eager.enforced) eager.used += 1n;
        }
        expect(eager.used).toBe(BigInt(hard));
        expect(grants(BigInt(hard), quotas, 1n)).toEqual(quotas.map(({ granted }) => granted));
      }),
      { seed: 5 },
    );
  });
});
