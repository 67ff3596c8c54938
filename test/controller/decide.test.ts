import { describe, expect, it } from "vitest";
import { type Attempt, decide, type Situation } from "../../src/controller/decide";
import type { Condition } from "../../stacks/contract/condition";

function ready(status: Condition["status"], observedGeneration: number): Condition[] {
  const lastTransitionTime = "2026-01-01T00:00:00Z";
  return [{ type: "Ready", status, reason: "Any", message: "", observedGeneration, lastTransitionTime }];
}

/** An object at rest: its last update succeeded for generation 3 with program p1. */
function situation(changes: Partial<Situation> = {}): Situation {
  return {
    metadata: { uid: "uid-1", generation: 3 },
    finalized: true,
    status: { conditions: ready("True", 3), stack: { name: "stack", program: "p1", resources: [] } },
    program: "p1",
    drifted: [],
    paused: false,
    requested: undefined,
    lastAttempt: undefined,
    waits: false,
    ...changes,
  };
}

function attempt(changes: Partial<Attempt> = {}): Attempt {
  return { uid: "uid-1", generation: 3, program: "p1", outcome: "terminal", drift: "", ...changes };
}

const failed = { conditions: ready("False", 3), stack: situation().status.stack } as Situation["status"];
const deleted = { uid: "uid-1", generation: 3, deletionTimestamp: "2026-01-01T00:00:00Z" };

describe("an object that is at rest", () => {
  it("needs nothing, also after a restart that forgot the last attempt", () => {
    expect(decide(situation())).toEqual({ type: "none" });
  });

  it("needs nothing when this process updated it", () => {
    expect(decide(situation({ lastAttempt: attempt({ outcome: "succeeded" }) }))).toEqual({ type: "none" });
  });

  it("is updated when its spec changes", () => {
    expect(decide(situation({ metadata: { uid: "uid-1", generation: 4 } }))).toEqual({
      type: "up",
      cause: "Updating",
      refresh: false,
    });
  });

  it("is updated when the program changes", () => {
    expect(decide(situation({ program: "p2" }))).toEqual({ type: "up", cause: "ProgramChanged", refresh: false });
  });

  it("is repaired, with a look at the real world, when something has drifted", () => {
    expect(decide(situation({ drifted: ["v1/Namespace//acme"] }))).toEqual({
      type: "up",
      cause: "Repairing",
      refresh: true,
    });
  });

  it("is refreshed along with a change when something has drifted as well", () => {
    const drifted = ["v1/Namespace//acme"];
    expect(decide(situation({ metadata: { uid: "uid-1", generation: 4 }, drifted }))).toMatchObject({ refresh: true });
    expect(decide(situation({ program: "p2", drifted }))).toMatchObject({ cause: "ProgramChanged", refresh: true });
  });
});

describe("an object that was never updated with success", () => {
  it("is created", () => {
    expect(decide(situation({ finalized: false, status: {} }))).toEqual({
      type: "up",
      cause: "Creating",
      refresh: false,
    });
  });

  it("is tried again after an attempt that time may heal", () => {
    const lastAttempt = attempt({ outcome: "retryable" });
    expect(decide(situation({ status: { conditions: ready("False", 3) }, lastAttempt }))).toEqual({
      type: "up",
      cause: "Retrying",
      refresh: false,
    });
  });

  it("is created, not retried, when it is another object of the same name", () => {
    const lastAttempt = attempt({ uid: "uid-of-predecessor", outcome: "retryable" });
    expect(decide(situation({ status: {}, lastAttempt }))).toMatchObject({ cause: "Creating" });
  });
});

describe("an object whose last update failed", () => {
  it("is tried again with a refresh, as nobody knows how far that update came", () => {
    expect(decide(situation({ status: failed }))).toEqual({ type: "up", cause: "Retrying", refresh: true });
  });

  it("is tried again when an update of this generation never reported its end", () => {
    const status = { ...failed, conditions: ready("Unknown", 3) };
    expect(decide(situation({ status }))).toMatchObject({ type: "up", cause: "Retrying" });
  });

  it("waits for its author when only the author can help", () => {
    expect(decide(situation({ status: failed, lastAttempt: attempt() }))).toEqual({ type: "none" });
    expect(decide(situation({ status: {}, lastAttempt: attempt() }))).toEqual({ type: "none" });
  });

  it.each<[string, Partial<Situation>]>([
    ["its spec changes", { metadata: { uid: "uid-1", generation: 4 } }],
    ["the program changes", { program: "p2" }],
    ["something else drifts", { drifted: ["v1/Namespace//acme"] }],
    ["it was deleted and made anew", { metadata: { uid: "uid-2", generation: 3 } }],
    ["the operator restarts", { lastAttempt: undefined }],
  ])("waits no longer when %s", (_, changes) => {
    expect(decide(situation({ status: failed, lastAttempt: attempt(), ...changes }))).toMatchObject({ type: "up" });
  });
});

describe("an object whose last attempt waits for something else to end", () => {
  const waiting = { status: failed, lastAttempt: attempt({ outcome: "pending" }), waits: true };

  it("waits for that, its destroy as well", () => {
    expect(decide(situation(waiting))).toEqual({ type: "wait" });
    expect(decide(situation({ ...waiting, metadata: deleted }))).toEqual({ type: "wait" });
  });

  it.each<[string, Partial<Situation>]>([
    ["that is gone", { waits: false }],
    ["its spec changes", { metadata: { uid: "uid-1", generation: 4 } }],
    ["something else drifts", { drifted: ["v1/Namespace//acme"] }],
    ["it is asked to", { requested: "now" }],
  ])("is updated when %s", (_, changes) => {
    expect(decide(situation({ ...waiting, ...changes }))).toMatchObject({ type: "up" });
  });

  it("is destroyed when that is gone", () => {
    expect(decide(situation({ ...waiting, metadata: deleted, waits: false }))).toEqual({ type: "destroy" });
  });
});

describe("an object that somebody took the finalizer off", () => {
  it.each<[string, Partial<Situation>]>([
    ["at rest", {}],
    ["waiting for its author", { status: failed, lastAttempt: attempt() }],
    [
      "waiting for something else to end",
      { status: failed, lastAttempt: attempt({ outcome: "pending" }), waits: true },
    ],
  ])("gets it back, %s", (_, changes) => {
    expect(decide(situation({ ...changes, finalized: false }))).toEqual({ type: "hold" });
  });

  it("gets it with its update, where it needs one", () => {
    expect(decide(situation({ finalized: false, program: "p2" }))).toMatchObject({ type: "up" });
  });

  it.each<[string, Partial<Situation>]>([
    ["is paused", { paused: true }],
    ["is being deleted", { metadata: deleted }],
    ["has made nothing", { status: {}, lastAttempt: attempt() }],
  ])("does not, when it %s", (_, changes) => {
    expect(decide(situation({ ...changes, finalized: false })).type).not.toBe("hold");
  });
});

describe("an object that is being deleted", () => {
  it("is destroyed while it carries the finalizer, whatever else is wrong with it", () => {
    const changes = { status: failed, lastAttempt: attempt(), program: "p2", drifted: ["v1/Namespace//acme"] };
    expect(decide(situation({ metadata: deleted, ...changes }))).toEqual({ type: "destroy" });
  });

  it("is left alone without the finalizer: nothing was made for it, or it is destroyed already", () => {
    expect(decide(situation({ metadata: deleted, finalized: false, status: {} }))).toEqual({ type: "none" });
  });
});
