import { describe, expect, it } from "vitest";
import { failedConditions } from "../../src/controller/conditions";
import { type Attempt, decide, type Facts, maintainsBefore } from "../../src/controller/decide";
import type { Condition } from "../../stacks/contract/condition";

function ready(status: Condition["status"], observedGeneration: number): Condition[] {
  const lastTransitionTime = "2026-01-01T00:00:00Z";
  return [{ type: "Ready", status, reason: "Any", message: "", observedGeneration, lastTransitionTime }];
}

/** An object at rest: its last update succeeded for generation 3 with program p1. */
function facts(changes: Partial<Facts> = {}): Facts {
  return {
    metadata: { uid: "uid-1", generation: 3 },
    gone: false,
    finalized: true,
    status: { conditions: ready("True", 3), stack: { name: "stack", program: "p1", resources: [] } },
    program: "p1",
    drifted: [],
    paused: false,
    requested: undefined,
    lastAttempt: undefined,
    blockedMs: 0,
    unblocked: false,
    releases: false,
    sharesStack: false,
    drift: { edited: [], missing: [] },
    comparedDrift: false,
    completed: [],
    lacksMore: false,
    backoff: { repairMs: 0, replacementMs: 0, settledMs: 0 },
    driftUnknown: undefined,
    rolledOut: true,
    ...changes,
  };
}

function attempt(changes: Partial<Attempt> = {}): Attempt {
  return { uid: "uid-1", generation: 3, program: "p1", outcome: "terminal", drifted: [], conditions: [], ...changes };
}

const paused: Condition = {
  type: "Reconciling",
  status: "False",
  reason: "Paused",
  message: "",
  observedGeneration: 3,
  lastTransitionTime: "2026-01-01T00:00:00Z",
};
const RESUMED = { type: "nothing", conditions: [{ type: "Reconciling", reason: "NotReconciling" }] };

const failed = { conditions: ready("False", 3), stack: facts().status.stack } as Facts["status"];
const deleted = { uid: "uid-1", generation: 3, deletionTimestamp: "2026-01-01T00:00:00Z" };

describe("an object that is at rest", () => {
  it("needs nothing, also after a restart that forgot the last attempt", () => {
    expect(decide(facts())).toMatchObject({ type: "nothing" });
  });

  it("needs nothing when this process updated it", () => {
    expect(decide(facts({ lastAttempt: attempt({ outcome: "succeeded" }) }))).toMatchObject({ type: "nothing" });
  });

  it("is updated when its spec changes", () => {
    expect(decide(facts({ metadata: { uid: "uid-1", generation: 4 } }))).toMatchObject({
      type: "update",
      cause: "Updating",
      refresh: false,
    });
  });

  it("is updated when the program changes", () => {
    expect(decide(facts({ program: "p2" }))).toMatchObject({ type: "update", cause: "ProgramChanged", refresh: false });
  });

  it("is repaired, with a look at the real world, when something has drifted", () => {
    expect(decide(facts({ drifted: ["v1/Namespace//acme"] }))).toMatchObject({
      type: "update",
      cause: "Repairing",
      refresh: true,
    });
  });

  it("is refreshed along with a change when something has drifted as well", () => {
    const drifted = ["v1/Namespace//acme"];
    expect(decide(facts({ metadata: { uid: "uid-1", generation: 4 }, drifted }))).toMatchObject({ refresh: true });
    expect(decide(facts({ program: "p2", drifted }))).toMatchObject({ cause: "ProgramChanged", refresh: true });
  });
});

describe("an object that was never updated with success", () => {
  it("is created", () => {
    expect(decide(facts({ finalized: false, status: {} }))).toMatchObject({
      type: "update",
      cause: "Creating",
      refresh: false,
    });
  });

  it("is tried again after an attempt that time may heal", () => {
    const lastAttempt = attempt({ outcome: "retryable" });
    expect(decide(facts({ status: { conditions: ready("False", 3) }, lastAttempt }))).toMatchObject({
      type: "update",
      cause: "Retrying",
      refresh: false,
    });
  });

  it("is created, not retried, when it is another object of the same name", () => {
    const lastAttempt = attempt({ uid: "uid-of-predecessor", outcome: "retryable" });
    expect(decide(facts({ status: {}, lastAttempt }))).toMatchObject({ cause: "Creating" });
  });
});

describe("an object whose last update failed", () => {
  it("is tried again with a refresh, as no one knows how far that update came", () => {
    expect(decide(facts({ status: failed }))).toMatchObject({ type: "update", cause: "Retrying", refresh: true });
  });

  it("is tried again when an update of this generation never reported its end", () => {
    const status = { ...failed, conditions: ready("Unknown", 3) };
    expect(decide(facts({ status }))).toMatchObject({ type: "update", cause: "Retrying" });
  });

  it("is tried again when a repair never reported its end, although what it repaired is there", () => {
    const { status } = facts();
    const repairing = { ...ready("True", 3)[0], type: "Reconciling", reason: "Repairing" } as Condition;
    const conditions = [...ready("True", 3), repairing];
    const plan = decide(facts({ status: { ...status, conditions } }));
    expect(plan).toMatchObject({ type: "update", cause: "Retrying", refresh: true, mayHaveOrphans: true });
  });

  it("waits for its author when only the author can help", () => {
    expect(decide(facts({ status: failed, lastAttempt: attempt() }))).toMatchObject({ type: "nothing" });
    expect(decide(facts({ status: {}, lastAttempt: attempt() }))).toMatchObject({ type: "nothing" });
  });

  it.each<[string, Partial<Facts>]>([
    ["its spec changes", { metadata: { uid: "uid-1", generation: 4 } }],
    ["the program changes", { program: "p2" }],
    ["something else drifts", { drifted: ["v1/Namespace//acme"] }],
    ["it was deleted and made anew", { metadata: { uid: "uid-2", generation: 3 } }],
    ["the operator restarts", { lastAttempt: undefined }],
  ])("waits no longer when %s", (_, changes) => {
    expect(decide(facts({ status: failed, lastAttempt: attempt(), ...changes }))).toMatchObject({ type: "update" });
  });
});

describe("a status that says Ready of an object whose last update failed", () => {
  const conditions = failedConditions(3, [
    { message: "no such table", reason: "TableNotFound", errorClass: "terminal" },
  ]);

  it("is corrected when only the author can help", () => {
    const plan = decide(facts({ lastAttempt: attempt({ conditions }) }));
    expect(plan).toMatchObject({
      type: "nothing",
      conditions: [{ type: "Ready", status: "False" }, { type: "Stalled" }],
    });
  });

  it("is corrected when it was wiped", () => {
    const plan = decide(facts({ status: {}, lastAttempt: attempt({ conditions }) }));
    expect(plan).toMatchObject({
      type: "nothing",
      conditions: [{ type: "Ready" }, { type: "Stalled", status: "True" }],
    });
  });

  it.each(["retryable", "pending"] as const)("does not end the retries: %s", (outcome) => {
    const lastAttempt = attempt({ outcome });
    expect(decide(facts({ lastAttempt }))).toMatchObject({ type: "update", cause: "Retrying", refresh: true });
  });

  it("is not touched when it says what that update wrote", () => {
    const lastTransitionTime = "2026-01-01T00:00:00Z";
    const written = conditions.filter(({ type }) => type !== "Reconciling").map((c) => ({ ...c, lastTransitionTime }));
    const status = { ...failed, conditions: written } as Facts["status"];
    expect(decide(facts({ status, lastAttempt: attempt({ conditions }) }))).toMatchObject({ conditions: [] });
  });
});

describe("an object whose last attempt waits for something else to end", () => {
  const waiting = { status: failed, lastAttempt: attempt({ outcome: "pending" }), blockedMs: 1_000 };

  it("waits for that, its destroy as well", () => {
    expect(decide(facts(waiting))).toMatchObject({ type: "wait" });
    expect(decide(facts({ ...waiting, metadata: deleted }))).toMatchObject({ type: "wait" });
  });

  it.each<[string, Partial<Facts>]>([
    ["that is gone", { blockedMs: 0 }],
    ["its spec changes", { metadata: { uid: "uid-1", generation: 4 } }],
    ["something else drifts", { drifted: ["v1/Namespace//acme"] }],
    ["it is asked to", { requested: "now" }],
  ])("is updated when %s", (_, changes) => {
    expect(decide(facts({ ...waiting, ...changes }))).toMatchObject({ type: "update" });
  });

  it("is destroyed when that is gone", () => {
    expect(decide(facts({ ...waiting, metadata: deleted, blockedMs: 0 }))).toMatchObject({ type: "destroy" });
  });
});

describe("an object that a user took the finalizer off", () => {
  it.each<[string, Partial<Facts>]>([
    ["at rest", {}],
    ["waiting for its author", { status: failed, lastAttempt: attempt() }],
    [
      "waiting for something else to end",
      { status: failed, lastAttempt: attempt({ outcome: "pending" }), blockedMs: 1_000 },
    ],
  ])("gets it back, %s", (_, changes) => {
    expect(decide(facts({ ...changes, finalized: false }))).toMatchObject({ type: "finalize" });
  });

  it("gets it with its update, where it needs one", () => {
    expect(decide(facts({ finalized: false, program: "p2" }))).toMatchObject({ type: "update" });
  });

  it.each<[string, Partial<Facts>]>([
    ["is paused", { paused: true }],
    ["is being deleted", { metadata: deleted }],
    ["has made nothing", { status: {}, lastAttempt: attempt() }],
  ])("does not, when it %s", (_, changes) => {
    expect(decide(facts({ ...changes, finalized: false })).type).not.toBe("finalize");
  });
});

describe("an object that is being deleted", () => {
  it("is destroyed while it carries the finalizer, whatever else is wrong with it", () => {
    const changes = { status: failed, lastAttempt: attempt(), program: "p2", drifted: ["v1/Namespace//acme"] };
    expect(decide(facts({ metadata: deleted, ...changes }))).toMatchObject({ type: "destroy" });
  });

  it("is destroyed in spite of a pause when it is gone: no one can end that", () => {
    expect(decide(facts({ metadata: deleted, paused: true })).type).toBe("pause");
    expect(decide(facts({ metadata: deleted, paused: true, gone: true })).type).toBe("destroy");
  });

  it("is left alone without the finalizer: nothing was made for it, or it is destroyed already", () => {
    expect(decide(facts({ metadata: deleted, finalized: false, status: {} }))).toMatchObject({ type: "nothing" });
  });
});

describe("a repair that has to wait", () => {
  const pod = "v1/Pod/default/a";
  const drifted: Partial<Facts> = { drifted: [pod], drift: { edited: [pod], missing: [] } };
  const waiting = (repairMs: number, replacementMs = 0) => ({ repairMs, replacementMs, settledMs: 0 });
  const cases: [string, Partial<Facts>, object][] = [
    ["not while repairs last", { ...drifted, backoff: waiting(-1) }, { type: "update", cause: "Repairing" }],
    [
      "for another controller that undoes each",
      { ...drifted, backoff: waiting(9_999.5) },
      { type: "backOff", requeueAfterMs: 10_000, conditions: [] },
    ],
    [
      "not for what completed the first time",
      { drifted: [pod], completed: [pod] },
      { type: "update", replaced: [pod], postponed: [], onlyLacking: true },
    ],
    [
      "for what completed again",
      { drifted: [pod], completed: [pod], backoff: waiting(0, 5_000) },
      { type: "backOff", requeueAfterMs: 5_000, conditions: [{ type: "Reconciling", reason: "BackOff" }] },
    ],
    [
      "not for what else is lacking",
      { drifted: [pod], completed: [pod], lacksMore: true, backoff: waiting(0, 5_000) },
      { type: "update", cause: "Repairing", replaced: [], postponed: [pod] },
    ],
    [
      "not with a new spec",
      { ...drifted, metadata: { uid: "uid-1", generation: 4 }, backoff: waiting(5_000) },
      { type: "update", cause: "Updating" },
    ],
  ];
  it.each(cases)("%s", (_, changes, expected) => {
    expect(decide(facts(changes))).toMatchObject(expected);
  });
});

describe("the status of an object that needs nothing", () => {
  const condition = (type: string, reason: string): Condition => {
    return { type, status: "True", reason, message: "", observedGeneration: 3, lastTransitionTime: "" };
  };
  const having = (...conditions: Condition[]): Partial<Facts> => ({
    status: { ...facts().status, conditions: [...ready("True", 3), ...conditions] },
  });
  const settledMs = (ms: number) => ({ repairMs: 0, replacementMs: 0, settledMs: ms });
  const unknown = { type: "DriftUnknown", status: "True", reason: "Away", message: "", observedGeneration: 3 } as const;
  const cases: [string, Partial<Facts>, string[], number][] = [
    ["stays as it is", {}, [], 0],
    [
      "says no longer that an update runs that this process saw succeed",
      { ...having(condition("Reconciling", "Repairing")), lastAttempt: attempt({ outcome: "succeeded" }) },
      ["Reconciling=False"],
      0,
    ],
    ["says no longer that it backs off", having(condition("Reconciling", "BackOff")), ["Reconciling=False"], 0],
    [
      "still says that a conflict continues",
      { ...having(condition("FieldConflict", "RepairsReverted")), backoff: settledMs(7_000) },
      [],
      7_000,
    ],
    ["says that a conflict is over", having(condition("FieldConflict", "RepairsReverted")), ["FieldConflict=False"], 0],
    ["says that drift is unknown", { driftUnknown: unknown }, ["DriftUnknown=True"], 0],
    ["says that once", { ...having({ ...unknown, lastTransitionTime: "" }), driftUnknown: unknown }, [], 0],
  ];
  it.each(cases)("%s", (_, changes, expected, requeueAfterMs) => {
    const plan = decide(facts(changes));
    expect(plan).toMatchObject({ type: "nothing", requeueAfterMs });
    const said = plan.type === "nothing" ? plan.conditions : [];
    expect(said.map(({ type, status }) => `${type}=${status}`)).toEqual(expected);
  });
});

describe("how an object is updated and destroyed", () => {
  const status = facts().status;
  const unfinished: Partial<Facts> = { status: { ...failed, observedGeneration: 2 } };
  const deleting = [{ ...ready("True", 3)[0], type: "Reconciling", reason: "Deleting" }] as Condition[];
  const cases: [string, Partial<Facts>, object][] = [
    ["a first update in a stack of its own is reported", { status: {} }, { progressReport: "beside" }],
    ["one in a shared stack only when it takes long", { status: {}, sharesStack: true }, { progressReport: "late" }],
    ["a repair before it begins, as nothing else tells of it", { drifted: ["a"] }, { progressReport: "before" }],
    ["one that is tried again is reported", { status: failed, sharesStack: true }, { progressReport: "beside" }],
    [
      "one after a failure may find orphans",
      { status: failed, lastAttempt: attempt({ outcome: "retryable" }) },
      { mayHaveOrphans: true },
    ],
    [
      "one after a success does not",
      { program: "p2", lastAttempt: attempt({ outcome: "succeeded" }) },
      { mayHaveOrphans: false },
    ],
    [
      "resources are deleted with it",
      { metadata: deleted },
      { release: false, finishUpdate: false, progressReported: false },
    ],
    ["or stay, by its deletion policy", { metadata: deleted, releases: true }, { release: true }],
    [
      "an object that is gone gets no status, and no update",
      { metadata: { ...deleted, generation: 4 }, gone: true, sharesStack: true, ...unfinished },
      { type: "destroy", progressReported: true, finishUpdate: false, mayHaveOrphans: true },
    ],
    [
      "its deletion is reported once",
      { metadata: deleted, status: { ...status, conditions: deleting } },
      { progressReported: true },
    ],
    [
      "an update that may have been cut off in a shared stack is finished first",
      { metadata: { ...deleted, generation: 4 }, sharesStack: true, ...unfinished },
      { finishUpdate: true },
    ],
    [
      "what a destroy waited for may have been the last",
      { metadata: deleted, unblocked: true, lastAttempt: attempt({ outcome: "succeeded" }) },
      { mayBeEmpty: true },
    ],
    [
      "but not where there may be orphans",
      { metadata: deleted, unblocked: true, lastAttempt: attempt() },
      { mayBeEmpty: false },
    ],
  ];
  it.each(cases)("%s", (_, changes, expected) => {
    expect(decide(facts(changes))).toMatchObject(expected);
  });
});

describe("an object that a rollout has not reached", () => {
  const waiting = { program: "p2", rolledOut: false };
  it.each<[string, Partial<Facts>, object]>([
    ["keeps its program", {}, { type: "nothing", conditions: [] }],
    ["has its status corrected", { status: { ...facts().status, conditions: [...ready("True", 3), paused] } }, RESUMED],
    ["gets its finalizer back", { finalized: false }, { type: "finalize" }],
    ["is updated when it drifts", { drifted: ["v1/Pod/default/a"] }, { type: "update", cause: "ProgramChanged" }],
    ["is updated when its spec changes", { metadata: { uid: "uid-1", generation: 4 } }, { cause: "Updating" }],
  ])("%s", (_, changes, expected) => {
    expect(decide(facts({ ...waiting, ...changes }))).toMatchObject(expected);
  });
});

describe("an object whose repair has to wait", () => {
  it("gets its finalizer back first", () => {
    const conflict = { drifted: ["v1/Pod/default/a"], backoff: { repairMs: 9, replacementMs: 0, settledMs: 9 } };
    expect(decide(facts(conflict))).toMatchObject({ type: "backOff" });
    expect(decide(facts({ ...conflict, finalized: false }))).toEqual({ type: "finalize" });
  });
});

describe("resources are maintained", () => {
  it.each<[string, Partial<Facts>, boolean]>([
    ["before nothing else is done", {}, true],
    ["before a repair", { drifted: ["v1/Pod/default/a"] }, true],
    ["before another try", { lastAttempt: attempt({ outcome: "retryable" }) }, true],
    [
      "not before the update to a new spec: what that calls for may not fit what there is, as with a quota's scopes",
      { metadata: { ...facts().metadata, generation: 4 } },
      false,
    ],
    ["not during a pause", { paused: true }, false],
    ["not before a destroy", { metadata: deleted }, false],
  ])("%s", (_, changes, expected) => {
    expect(maintainsBefore(decide(facts(changes)))).toBe(expected);
  });
});
