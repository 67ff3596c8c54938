import { describe, expect, it } from "vitest";
import { type Condition, findCondition, mergeConditions, type NewCondition } from "../../../stacks/contract/condition";

const now = new Date("2026-02-03T04:05:06.789Z");
const earlier = "2026-01-01T00:00:00Z";

function observed(type: string, status: Condition["status"], reason = "Any"): NewCondition {
  return { type, status, reason, message: "text", observedGeneration: 2 };
}

describe("mergeConditions", () => {
  it("dates a new condition, without the fractions that metav1.Time does not have", () => {
    expect(mergeConditions([], [observed("Ready", "True")], now)).toEqual([
      { ...observed("Ready", "True"), lastTransitionTime: "2026-02-03T04:05:06Z" },
    ]);
  });

  it("shows no password that an error has quoted", () => {
    const message = "cannot open postgres://u:hunter2@db/state?password=hunter3";
    const [condition] = mergeConditions([], [{ ...observed("Ready", "False"), message }], now);
    expect(condition?.message).toBe("cannot open postgres://u:***@db/state?password=***");
  });

  it("keeps the time when only reason, message or generation change", () => {
    const before = [{ ...observed("Ready", "True", "Old"), observedGeneration: 1, lastTransitionTime: earlier }];
    expect(mergeConditions(before, [observed("Ready", "True", "New")], now)).toEqual([
      { ...observed("Ready", "True", "New"), lastTransitionTime: earlier },
    ]);
  });
});

describe("findCondition", () => {
  const conditions = mergeConditions([], [observed("Ready", "True")], now);

  it("finds a condition by its type", () => {
    expect(findCondition(conditions, "Ready")).toBe(conditions[0]);
  });

  it("finds none of another type, and none in a status without conditions", () => {
    expect(findCondition(conditions, "Stalled")).toBeUndefined();
    expect(findCondition(undefined, "Ready")).toBeUndefined();
  });
});
