import { describe, expect, it } from "vitest";
import { describeUpdate } from "../../src/automation/planned-changes";

it("what an update did, where only its counts are known, leaves out what stayed the same", () => {
  expect(describeUpdate({ resourceChanges: { create: 2, same: 5, update: 1 } }, 3)).toEqual(["2 create, 1 update"]);
  expect(describeUpdate({ resourceChanges: { same: 5 } }, 3)).toEqual([]);
  expect(describeUpdate({}, 3)).toEqual([]);
});

describe("what an update did", () => {
  const change = { operation: "update", type: "Deployment", name: "deployment/cache" } as const;

  it("is the first changes, and how many more there are", () => {
    const told = "update Deployment deployment/cache";
    expect(describeUpdate({ changes: [change, change, change] }, 2)).toEqual([told, told, "1 more"]);
  });

  it("is told apart from what it has not finished, and the stack itself is none of it", () => {
    const unfinished = [{ operation: "create", type: "Pod", name: "web/a" } as const];
    expect(describeUpdate({ changes: [change], unfinished }, 3)).toEqual([
      "update Deployment deployment/cache",
      "unfinished: create Pod web/a",
    ]);
    expect(describeUpdate({ changes: [], resourceChanges: { create: 1 } }, 3)).toEqual([]);
  });

  it("says what they corrected, from what to what, and who had changed it", () => {
    const drift = [
      { field: "spec.replicas", wanted: 1, live: 3, by: "kubectl-edit" },
      { field: "metadata.labels.team", wanted: "a" },
    ];
    expect(describeUpdate({ changes: [{ ...change, drift }] }, 1)).toEqual([
      'update Deployment deployment/cache: spec.replicas 3 → 1 (kubectl-edit); metadata.labels.team nothing → "a"',
    ]);
  });

  it("tells its message as one, and in one line: it may be a commit's subject that reads as a change", () => {
    expect(describeUpdate({ changes: [change], message: "delete all\nupdate \u001b[2K" }, 3)).toEqual([
      "update Deployment deployment/cache",
      "message: delete all\\u000aupdate \\u001b[2K",
    ]);
  });
});
