import type { OpType } from "@pulumi/pulumi/automation/stack";
import { describe, expect, it } from "vitest";
import type { Properties } from "../../providers/provider";
import type { OperationSummary } from "../../src/automation/engine";
import type { UpdateFailure } from "../../src/automation/event-log";
import {
  backOffConditions,
  conflictConditions,
  conflictMessage,
  deletingConditions,
  failedConditions,
  isUnfinished,
  pausedConditions,
  SUCCEEDED_CONDITIONS,
  updatingConditions,
} from "../../src/controller/conditions";
import { describeChanges, describeFailures, describeResult, outcomeOf } from "../../src/controller/describe";
import { type Condition, mergeConditions, type NewCondition } from "../../stacks/contract/condition";

const belongsToGlobex = { reason: "Conflict", message: "Namespace acme belongs to globex" } as const;
const conflict: UpdateFailure = { errorClass: "terminal", resource: "namespace/acme", ...belongsToGlobex };
const refused: UpdateFailure = { errorClass: "retryable", reason: "ConnectionRefused", message: "connection refused" };

/** `Synced=True` and the like. */
const summary = (conditions: readonly NewCondition[]) => conditions.map(({ type, status }) => `${type}=${status}`);
const find = (conditions: readonly NewCondition[], type: string) =>
  conditions.find((condition) => condition.type === type);

it("while an update runs, a known object keeps what its Synced says, so that it does not flicker", () => {
  const conditions = updatingConditions("Updating", true);
  expect(summary(conditions)).toEqual(["Reconciling=True"]);
  expect(conditions[0]).toMatchObject({ reason: "Updating" });
});

describe("after an update", () => {
  it("that only the author can heal, the object is stalled and says why", () => {
    const conditions = failedConditions([conflict]);
    expect(summary(conditions)).toEqual(["Synced=False", "Reconciling=False", "Stalled=True"]);
    const message = "namespace/acme: Namespace acme belongs to globex";
    expect(find(conditions, "Stalled")).toMatchObject({ reason: "Conflict", message });
  });

  it("that failed in both ways, the object is tried again", () => {
    expect(outcomeOf([conflict, refused])).toBe("retryable");
    expect(find(failedConditions([conflict, refused]), "Stalled")?.status).toBe("False");
  });

  it("that failed without a word, the object still has a reason", () => {
    expect(find(failedConditions([]), "Synced")?.reason).toBe("UpdateFailed");
  });
});

it("while an object is deleted, it says what keeps it, also when that is terminal: it is tried again all the same", () => {
  const conditions = deletingConditions([conflict]);
  expect(summary(conditions)).toEqual(["Synced=False", "Reconciling=True", "Stalled=False"]);
  expect(find(conditions, "Synced")).toMatchObject({
    reason: "DeletionFailed",
    message: "deletion will be tried again: namespace/acme: Conflict: Namespace acme belongs to globex",
  });
  expect(find(conditions, "Reconciling")).toMatchObject({ message: "deletion will be tried again; see Synced" });
});

describe("while an object is paused", () => {
  it("it is not reconciling, says why and how to change that, and keeps what its Synced says", () => {
    const conditions = pausedConditions(undefined, [], find(SUCCEEDED_CONDITIONS, "Synced") as Condition);
    expect(summary(conditions)).toEqual(["Reconciling=False", "Paused=True"]);
    const message = "reconciliation is paused by the annotation kindstack.dev/paused";
    expect(conditions[1]).toMatchObject({ reason: "Paused", message });
  });

  it("and something waits, it says what, and is not synced, until nothing waits any more", () => {
    const was = {
      ...(find(SUCCEEDED_CONDITIONS, "Synced") as Condition),
      observedGeneration: 3,
      lastTransitionTime: "",
    };
    const conditions = pausedConditions(undefined, ["The spec has changed", "Deployment a/b is missing"], was);
    const message =
      "reconciliation is paused by the annotation kindstack.dev/paused; until it is removed, nothing is updated or deleted. " +
      "The spec has changed; Deployment a/b is missing";
    expect(find(conditions, "Paused")?.message).toBe(message);
    const synced = find(conditions, "Synced") as Condition;
    expect(synced).toEqual({ type: "Synced", status: "False", reason: "Paused", message, observedGeneration: 3 });
    const ended = pausedConditions(undefined, [], synced);
    expect(find(ended, "Synced")).toMatchObject({ status: "True", reason: "Succeeded" });
  });

  it("it keeps an error", () => {
    const was = find(failedConditions([conflict]), "Synced") as Condition;
    const conditions = pausedConditions(undefined, ["The spec has changed"], was);
    expect(summary(conditions)).toEqual(["Reconciling=False", "Paused=True"]);
  });

  it("by an annotation that cannot be understood, it says which", () => {
    const problem = 'annotation kindstack.dev/deletion-policy: "Retain" must be Orphan or Delete';
    const message = `${problem}; until it is corrected, nothing is updated or deleted`;
    const conditions = pausedConditions(problem, [], undefined);
    expect(find(conditions, "Paused")).toMatchObject({ reason: "InvalidAnnotation", message });
  });
});

it("while a user undoes every repair, an object is not as it says, has a field conflict and names the fields", () => {
  const conditions = conflictConditions(conflictMessage("spec.replicas is 2 in place of 1"));
  expect(summary(conditions)).toEqual(["Synced=False", "Reconciling=False", "Stalled=False", "FieldConflict=True"]);
  const message = "spec.replicas is 2 in place of 1; repairs back off (max 5 min)";
  expect(find(conditions, "FieldConflict")).toMatchObject({ reason: "RepairsReverted", message });
  expect(find(conditions, "Synced")).toMatchObject({ reason: "FieldConflict", message });
});

it.each<[string, readonly NewCondition[], boolean]>([
  ["runs, a first one", updatingConditions("Creating", false), true],
  ["runs", updatingConditions("Updating", true), true],
  ["failed and will be tried again", failedConditions([refused]), true],
  ["succeeded", SUCCEEDED_CONDITIONS, false],
  ["only its author can heal", failedConditions([conflict]), false],
  ["backs off", backOffConditions(["v1/Pod/default/a"]), false],
  ["has given way to the deletion", deletingConditions([]), false],
  ["has given way to a deletion that failed", deletingConditions([refused]), false],
  ["no one has told of", [], false],
])("an update may be unfinished, or not, that %s", (_, conditions, expected) => {
  expect(isUnfinished(mergeConditions([], conditions, new Date()))).toBe(expected);
});

describe("texts", () => {
  it("join failures, each with its resource", () => {
    const text = "namespace/acme: Namespace acme belongs to globex; connection refused";
    expect(describeFailures([conflict, refused])).toBe(text);
  });

  it("are cut where a condition would grow without bound", () => {
    const text = describeFailures([{ ...refused, message: "x".repeat(10_000) }]);
    expect(text).toHaveLength(2_000);
    expect(text.endsWith("…")).toBe(true);
    const cut = describeFailures([{ ...refused, message: `${"x".repeat(1_998)}${"🇨".repeat(100)}` }]);
    expect(cut).toBe(`${"x".repeat(1_998)}…`);
  });

  it("have no effect on a terminal, whatever they quote", () => {
    const message = 'invalid input: "\u001b[2J\u009b2J\u202egnp.exe\r"\nDETAIL: <b>|`@team`';
    const text = 'row\\u0007: invalid input: "\\u001b[2J\\u009b2J\\u202egnp.exe\\u000d"\nDETAIL: <b>|`@team`';
    expect(describeFailures([{ ...refused, resource: "row\u0007", message }])).toBe(text);
  });

  it("name what changed, and nothing that did not", () => {
    expect(describeChanges({ create: 2, delete: 1 }, [])).toBe("2 created, 1 deleted");
    expect(describeChanges({ replace: 1, "create-replacement": 1, "delete-replaced": 1 }, [])).toBe("1 replaced");
    expect(describeChanges({ refresh: 3 }, [])).toBe("");
    expect(describeChanges({ delete: 2 }, ["Pod pod/a", "Pod pod/b"])).toBe("2 deleted: Pod pod/a; Pod pod/b");
  });

  it("count as adopted what was there before it was created", () => {
    const made = (outputs: Properties, operation: OpType = "create") => {
      return { urn: "", type: "Row", name: "row", operation, outputs };
    };
    const resources = [made({ created: false }), made({ created: true }), made({}), made({ created: false }, "update")];
    const summary = { resourceChanges: { create: 3, update: 1 } } as unknown as OperationSummary;
    expect(describeResult({ summary, resources, deleted: [], gone: [] })).toBe("2 created, 1 adopted, 1 updated");
  });
});
