import type {
  Attempt,
  DriftFacts,
  Facts,
  LastFacts,
  ObjectFacts,
  StackFacts,
  Timing,
} from "../../src/controller/facts";
import type { Settings } from "../../stacks/contract/annotations";
import type { Condition } from "../../stacks/contract/condition";

/** Facts that a test changes, of whatever group. */
export type Changes = Partial<ObjectFacts & Settings & StackFacts & DriftFacts & LastFacts & Timing>;

/** A condition of the object's present generation. */
export function told(type: string, reason: string, status: Condition["status"] = "True"): Condition {
  return { type, status, reason, message: "", observedGeneration: 3, lastTransitionTime: "2026-01-01T00:00:00Z" };
}

export const synced = (status: Condition["status"]) => told("Synced", "Any", status);

/** An object whose last update succeeded for generation 3 with program p1. */
const AT_REST: Facts = {
  object: {
    metadata: { uid: "uid-1", generation: 3 },
    status: {
      observedGeneration: 3,
      conditions: [synced("True")],
      stack: { name: "stack", program: "p1", resources: [] },
    },
    isTombstone: false,
    hasFinalizer: true,
    otherFinalizers: [],
    orphaned: undefined,
  },
  settings: {
    mode: "Apply",
    paused: false,
    problem: undefined,
    releases: false,
    requested: undefined,
    ignoreFields: [],
    stateDecision: undefined,
  },
  stack: {
    refusal: undefined,
    unlisted: false,
    program: "p1",
    rolledOut: true,
    changedReads: [],
    readsLive: false,
    adopts: false,
    maintained: false,
  },
  drift: {
    ids: [],
    edited: [],
    missing: [],
    contents: [],
    polled: undefined,
    completed: [],
    lacksMore: false,
    unknown: undefined,
  },
  last: { attempt: undefined, isRecorded: false, preview: undefined, planReason: undefined },
  timing: {
    blockedMs: 0,
    repairMs: 0,
    replacementMs: 0,
    conflictOverMs: 0,
    previewedForMs: Number.POSITIVE_INFINITY,
    refreshMs: undefined,
  },
};

/** The facts of an object at rest, but for these. */
export function facts(changes: Changes = {}): Facts {
  const changed = <G extends object>(group: G): G => {
    return { ...group, ...Object.fromEntries(Object.entries(changes).filter(([fact]) => fact in group)) };
  };
  return {
    object: changed(AT_REST.object),
    settings: changed(AT_REST.settings),
    stack: changed(AT_REST.stack),
    drift: changed(AT_REST.drift),
    last: changed(AT_REST.last),
    timing: changed(AT_REST.timing),
  };
}

/** An attempt of that object which its author has to correct. */
export function attempt(changes: Partial<Attempt> = {}): Attempt {
  return {
    uid: "uid-1",
    generation: 3,
    programDigest: "p1",
    outcome: "terminal",
    stateDecision: undefined,
    drifted: [],
    conditions: [],
    ...changes,
  };
}
