import { describe, expect, it } from "vitest";
import { DriftBackoff, Repairs } from "../../src/controller/repairs";

const SECOND = 1_000;
const START = 5_000_000;
const DAY = 24 * 60 * 60 * SECOND;

/** Repairs of one field, each so long after the one before. @returns whether each was in conflict */
function fight(repairs: Repairs, everyMs: number, times: number, key = "replicas"): boolean[] {
  return Array.from({ length: times }, (_, index) =>
    repairs.repaired([key], [], START + index * everyMs, false).has(key),
  );
}

describe("repairs", () => {
  it.each([1, 15 * SECOND, 30 * SECOND, 3_600 * SECOND])(
    "every %i ms are a conflict from the third in a row on",
    (ms) => {
      expect(fight(new Repairs(START), ms, 4)).toEqual([false, false, true, true]);
    },
  );

  it("are in a row whatever else is repaired between them", () => {
    const repairs = new Repairs(START);
    repairs.repaired(["a"], [], START, false);
    repairs.repaired(["b"], [], START + 1, false);
    repairs.repaired(["a"], [], START + 2, false);
    expect(repairs.repaired(["a", "c"], [], START + 3, false)).toEqual(new Set(["a"]));
  });

  it("are no conflict when each stays for a day", () => {
    expect(fight(new Repairs(START), DAY + 1, 5)).toEqual([false, false, false, false, false]);
  });

  it("are no conflict when each stays for a day, whatever else is repaired meanwhile", () => {
    const repairs = new Repairs(START);
    const day = (index: number) => {
      for (let hour = 0; hour < 24; hour++)
        repairs.repaired([`row ${index}-${hour}`], [], START + index * (DAY + 1) + hour, false);
      return repairs.repaired(["replicas"], [], START + index * (DAY + 1) + DAY / 2, false).has("replicas");
    };
    expect([0, 1, 2, 3].map(day)).toEqual([false, false, false, false]);
  });

  it("of a conflict wait twice as long each time, up to five minutes", () => {
    const repairs = new Repairs(START);
    fight(repairs, 0, 3);
    const delays = Array.from({ length: 7 }, () => {
      const at = repairs.notBefore;
      repairs.repaired(["replicas"], [], at, false);
      return (repairs.notBefore - at) / SECOND;
    });
    expect(delays).toEqual([20, 40, 80, 160, 300, 300, 300]);
  });

  it("of what is changed again at once are a conflict from the first on", () => {
    const repairs = new Repairs(START);
    expect(repairs.repaired([], ["image"], START, false)).toEqual(new Set(["image"]));
    expect(repairs.notBefore).toBe(START + 10 * SECOND);
  });

  it("are settled when one has stayed twice as long as any before", () => {
    const repairs = new Repairs(START);
    fight(repairs, 15 * SECOND, 3);
    expect(repairs.conflictOverAt).toBe(START + 60 * SECOND);
  });

  it("continue a conflict that another process has reported, until one has stayed for two minutes", () => {
    const repairs = new Repairs(START);
    expect(repairs.conflictOverAt).toBe(START + 120 * SECOND);
    expect(repairs.notBefore).toBe(Number.NEGATIVE_INFINITY);
    expect(repairs.repaired(["replicas"], [], START + 15 * SECOND, true)).toEqual(new Set(["replicas"]));
    expect(repairs.notBefore).toBe(START + 25 * SECOND);

    repairs.reset();
    expect(repairs.repaired(["replicas"], [], START + 31 * SECOND, true).size).toBe(0);
  });
});

it("replacements of what ends by itself wait from the first on, and begin again after a minute without one", () => {
  const backoff = new DriftBackoff();
  expect(backoff.notBefore).toBe(Number.NEGATIVE_INFINITY);
  backoff.happened(START);
  expect(backoff.notBefore).toBe(START + 10 * SECOND);
  backoff.happened(START + 10 * SECOND);
  expect(backoff.notBefore).toBe(START + 30 * SECOND);
  const later = backoff.notBefore + 60 * SECOND;
  backoff.happened(later);
  expect(backoff.notBefore).toBe(later + 10 * SECOND);
});
