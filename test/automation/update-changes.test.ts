import { describe, expect, it } from "vitest";
import { countsOf, listChanges } from "../../src/automation/update-changes";

describe("the counts of an update", () => {
  it("leave out what stayed the same", () => {
    expect(countsOf({ create: 2, same: 5, update: 1 })).toBe("2 create, 1 update");
    expect(countsOf({ same: 5 })).toBe("");
    expect(countsOf()).toBe("");
  });
});

describe("the changes of an update", () => {
  const change = { operation: "update", type: "Deployment", name: "deployment/cache" } as const;

  it("are the first ones, and how many more there are", () => {
    expect(listChanges([change, change, change], 2)).toEqual([
      "update Deployment deployment/cache",
      "update Deployment deployment/cache",
      "1 more",
    ]);
  });

  it("say what they corrected, from what to what, and who had changed it", () => {
    const drift = [
      { field: "spec.replicas", wanted: 1, live: 3, by: "kubectl-edit" },
      { field: "metadata.labels.team", wanted: "a" },
    ];
    expect(listChanges([{ ...change, drift }], 1)).toEqual([
      'update Deployment deployment/cache: spec.replicas 3 → 1 (kubectl-edit); metadata.labels.team nothing → "a"',
    ]);
  });
});
