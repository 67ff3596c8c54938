import { describe, expect, it } from "vitest";
import { type Cause, failedConditions } from "../../src/controller/conditions";
import { decide, maintainsBefore } from "../../src/controller/decide";
import { type Attempt, type ObjectFacts, previewedState } from "../../src/controller/facts";
import type { Condition } from "../../stacks/contract/condition";
import type { Mode } from "../../stacks/contract/mode";
import { attempt, type Changes, facts, ready } from "./facts";

const paused: Condition = {
  type: "Paused",
  status: "True",
  reason: "Paused",
  message: "",
  observedGeneration: 3,
  lastTransitionTime: "2026-01-01T00:00:00Z",
};
const PAUSED = [{ type: "Reconciling" }, { type: "Paused", status: "True", reason: "Paused" }];
const RESUMED = { type: "nothing", conditions: [] };

const REST = facts().object.status;
const failed = { conditions: ready("False", 3), stack: REST.stack } as ObjectFacts["status"];
const deleted = { uid: "uid-1", generation: 3, deletionTimestamp: "2026-01-01T00:00:00Z" };
const newSpec = { metadata: { uid: "uid-1", generation: 4 } };
const pod = "v1/Pod/default/a";
const drifted = { ids: [pod] };

/* What is decided, as far as it matters to a case. */
const NOTHING = { type: "nothing" };
const UPDATE = { type: "update" };
const PREVIEWED = { gate: "all" };
const ONLY_PREVIEWED = { type: "preview" };
const WAIT = { type: "wait" };
const PAUSE = { type: "pause" };
const FINISH = { type: "finish" };
const ADD_FINALIZER = { type: "addFinalizer" };
const DESTROY = { type: "destroy" };
const RELEASE = { type: "destroy", release: true };
const update = (cause: Cause, more: object = {}) => ({ type: "update", cause, ...more });

/** A table of decisions: what is different from an object at rest and from `base`, and what of the action matters. */
function decisions(title: string, cases: [string, Changes, object][], base: Changes = {}): void {
  describe(title, () => {
    it.each(cases)("%s", (_, changes, expected) => {
      expect(decide(facts({ ...base, ...changes }))).toMatchObject(expected);
    });
  });
}

decisions("an object that is at rest", [
  ["needs nothing, also after a restart that forgot the last attempt", {}, NOTHING],
  ["needs nothing when this process updated it", { attempt: attempt({ outcome: "succeeded" }) }, NOTHING],
  ["is updated when its spec changes", newSpec, update("Updating", { refresh: false })],
  ["is updated when the program changes", { program: "p2" }, update("ProgramChanged", { refresh: false })],
  [
    "is updated when it leaves other fields to others",
    { ignoreFields: ["Deployment:spec.replicas"] },
    { cause: "Updating" },
  ],
  ["is repaired, with a refresh, when something has drifted", drifted, update("Repairing", { refresh: true })],
  ["is refreshed along with a new spec when something has drifted", { ...newSpec, ...drifted }, { refresh: true }],
  [
    "is refreshed along with a new program when something has drifted",
    { program: "p2", ...drifted },
    { cause: "ProgramChanged", refresh: true },
  ],
]);

const told = (type: string, reason: string, status: Condition["status"] = "True"): Condition => ({
  type,
  status,
  reason,
  message: "",
  observedGeneration: 3,
  lastTransitionTime: "2026-01-01T00:00:00Z",
});
const fought = {
  status: {
    ...REST,
    conditions: [told("Synced", "FieldConflict", "False"), told("FieldConflict", "RepairsReverted")],
  } as ObjectFacts["status"],
};
decisions(
  "an object with a field that others change back",
  [
    [
      "is not updated for that alone",
      { repairMs: -1, replacementMs: -1, conflictOverMs: 7_000 },
      { type: "nothing", requeueAfterMs: 7_000 },
    ],
    [
      "is repaired when the time has come",
      { ...drifted, repairMs: 0, replacementMs: 0, conflictOverMs: 0 },
      update("Repairing"),
    ],
    [
      "waits until then, and says nothing new",
      { ...drifted, repairMs: 5_000, replacementMs: 0, conflictOverMs: 5_000 },
      { type: "backOff", conditions: [], requeueAfterMs: 5_000 },
    ],
    ["is updated at once to a new spec", newSpec, update("Updating")],
    [
      "is synced again when a repair has stayed",
      { repairMs: -1, replacementMs: -1, conflictOverMs: 0 },
      { conditions: [{ type: "Synced", status: "True" }, {}, {}, { type: "FieldConflict", status: "False" }] },
    ],
  ],
  fought,
);

decisions("an object whose resources do not work yet", [
  [
    "needs nothing: only Synced decides",
    {
      status: {
        ...REST,
        conditions: [
          ...ready("True", 3),
          told("Ready", "Progressing", "False"),
          told("Reconciling", "Progressing"),
        ] as Condition[],
      },
    },
    { type: "nothing", conditions: [] },
  ],
]);

decisions("an object that was never updated with success", [
  ["is created", { hasFinalizer: false, status: {} }, update("Creating", { refresh: false })],
  [
    "is tried again after an attempt that time may heal",
    { status: { conditions: ready("False", 3) }, attempt: attempt({ outcome: "retryable" }) },
    update("Retrying", { refresh: false }),
  ],
  [
    "is created, not retried, when it is another object of the same name",
    { status: {}, attempt: attempt({ uid: "uid-of-predecessor", outcome: "retryable" }) },
    { cause: "Creating" },
  ],
]);

const repairing = { ...ready("True", 3)[0], type: "Reconciling", reason: "Repairing" } as Condition;
decisions("an object whose last update failed", [
  [
    "is tried again with a refresh, as no one knows how far that update came",
    { status: failed },
    update("Retrying", { refresh: true }),
  ],
  [
    "is tried again when an update of this generation never reported its end",
    { status: { ...failed, conditions: ready("Unknown", 3) } },
    update("Retrying"),
  ],
  [
    "is tried again when a repair never reported its end, although what it repaired is there",
    { status: { ...REST, conditions: [...ready("True", 3), repairing] } },
    update("Retrying", { refresh: true, mayHaveUntracked: true }),
  ],
  ["waits for its author when only the author can help", { status: failed, attempt: attempt() }, NOTHING],
  ["waits for its author before its first success", { status: {}, attempt: attempt() }, NOTHING],
]);

decisions(
  "an object that waits for its author waits no longer when",
  [
    ["its spec changes", newSpec, UPDATE],
    ["the program changes", { program: "p2" }, UPDATE],
    ["something else drifts", drifted, UPDATE],
    ["it was deleted and created again", { metadata: { uid: "uid-2", generation: 3 } }, UPDATE],
    ["the operator restarts", { attempt: undefined }, UPDATE],
  ],
  { status: failed, attempt: attempt() },
);

const foreign = { errorClass: "terminal", reason: "BackendForeign", message: "it is another cluster's" } as const;
const stalledFor = (reason: string) => ({
  status: { ...REST, conditions: [...ready("True", 3), told("Stalled", reason)] } as ObjectFacts["status"],
});
decisions("an object at rest, while the state's backend is another operator's,", [
  [
    "tells that nothing is looked after",
    { refusal: foreign },
    { type: "nothing", conditions: [{ type: "Stalled", status: "True", reason: "BackendForeign" }] },
  ],
  ["tells it once", { refusal: { ...foreign, message: "" }, ...stalledFor("BackendForeign") }, RESUMED],
  [
    "tells when that is over",
    stalledFor("BackendUnknown"),
    { type: "nothing", conditions: [{ type: "Stalled", status: "False" }] },
  ],
  ["leaves what has stalled it besides", stalledFor("TableNotFound"), RESUMED],
  ["tells nothing once it is deleted", { refusal: foreign, metadata: deleted, hasFinalizer: false }, RESUMED],
]);

const refused = failedConditions([{ message: "no such table", reason: "TableNotFound", errorClass: "terminal" }]);
const lastTransitionTime = "2026-01-01T00:00:00Z";
const written = refused.filter(({ type }) => type !== "Reconciling").map((c) => ({ ...c, lastTransitionTime }));
decisions("a status that says Ready of an object whose last update failed", [
  [
    "is corrected when only the author can help",
    { attempt: attempt({ conditions: refused }) },
    { type: "nothing", conditions: [{ type: "Synced", status: "False" }, { type: "Stalled" }] },
  ],
  [
    "is corrected when it was wiped",
    { status: {}, attempt: attempt({ conditions: refused }) },
    { type: "nothing", conditions: [{ type: "Synced" }, { type: "Stalled", status: "True" }] },
  ],
  [
    "does not end the retries of what time may heal",
    { attempt: attempt({ outcome: "retryable" }) },
    update("Retrying", { refresh: true }),
  ],
  [
    "does not end the retries of what waited for something else",
    { attempt: attempt({ outcome: "pending" }) },
    update("Retrying", { refresh: true }),
  ],
  [
    "is not touched when it says what that update wrote",
    { status: { ...failed, conditions: written } as ObjectFacts["status"], attempt: attempt({ conditions: refused }) },
    { conditions: [] },
  ],
]);

const waiting = { status: failed, attempt: attempt({ outcome: "pending" }), blockedMs: 1_000 };
decisions(
  "an object whose last attempt waits for something else to end",
  [
    ["waits for that", {}, WAIT],
    ["waits for that with its destroy as well", { metadata: deleted }, WAIT],
    ["is updated when that is gone", { blockedMs: 0 }, UPDATE],
    ["is updated when its spec changes", newSpec, UPDATE],
    ["is updated when something else drifts", drifted, UPDATE],
    ["is updated when it is asked to", { requested: "now" }, UPDATE],
    ["is destroyed when that is gone", { metadata: deleted, blockedMs: 0, status: REST }, DESTROY],
  ],
  waiting,
);

decisions(
  "an object that a user took the finalizer off",
  [
    ["gets it back at rest", {}, ADD_FINALIZER],
    ["gets it back while it waits for its author", { status: failed, attempt: attempt() }, ADD_FINALIZER],
    ["gets it back while it waits for something else to end", waiting, ADD_FINALIZER],
    [
      "gets it back while its repair has to wait",
      { ...drifted, repairMs: 9, replacementMs: 0, conflictOverMs: 9 },
      ADD_FINALIZER,
    ],
    ["gets it with its update, where it needs one", { program: "p2" }, UPDATE],
    ["does not get it during a pause", { paused: true }, { type: "pause", conditions: PAUSED }],
    ["does not get it when it is being deleted", { metadata: deleted }, NOTHING],
    ["does not get it when it has made nothing", { status: {}, attempt: attempt() }, NOTHING],
  ],
  { hasFinalizer: false },
);

decisions(
  "an object that is being deleted",
  [
    [
      "is destroyed while it carries the finalizer, whatever else is wrong with it",
      { status: { ...failed, observedGeneration: 3 }, attempt: attempt(), program: "p2", ...drifted },
      DESTROY,
    ],
    [
      "is left alone during a pause, and not synced",
      { paused: true },
      { type: "pause", conditions: [...PAUSED, { type: "Synced", status: "False", reason: "Paused" }] },
    ],
    [
      "is destroyed in spite of a pause when it is gone: no one can end that",
      { paused: true, isTombstone: true },
      DESTROY,
    ],
    [
      "says whose finalizers keep it once its own is gone",
      { hasFinalizer: false, otherFinalizers: ["example.com/backup"] },
      {
        type: "nothing",
        conditions: [
          {
            type: "Synced",
            status: "False",
            message: expect.stringMatching(/waits for its other finalizers: example.com\/backup$/),
          },
          { type: "Reconciling", status: "True", reason: "Deleting" },
        ],
      },
    ],
    [
      "is left alone without the finalizer: nothing was made for it, or it is destroyed already",
      { hasFinalizer: false, status: {} },
      NOTHING,
    ],
  ],
  { metadata: deleted },
);

decisions(
  "an object that a rollout has not reached",
  [
    ["keeps its program", {}, { type: "nothing", conditions: [] }],
    ["has its status corrected", { status: { ...REST, conditions: [...ready("True", 3), paused] } }, RESUMED],
    ["gets its finalizer back", { hasFinalizer: false }, ADD_FINALIZER],
    ["is updated when it drifts", drifted, update("ProgramChanged")],
    ["is updated when its spec changes", newSpec, { cause: "Updating" }],
  ],
  { program: "p2", rolledOut: false },
);

const edited: Changes = { ...drifted, edited: [pod], missing: [], contents: [] };
const backoff = (repairMs: number, replacementMs = 0) => ({ repairMs, replacementMs, conflictOverMs: 0 });
decisions("a repair waits", [
  ["not while repairs last", { ...edited, ...backoff(-1) }, update("Repairing")],
  [
    "for another controller that undoes each",
    { ...edited, ...backoff(9_999.5) },
    { type: "backOff", requeueAfterMs: 10_000, conditions: [] },
  ],
  [
    "not for what completed the first time",
    { ids: [pod], completed: [pod] },
    { type: "update", replaced: [pod], postponed: [], onlyLacking: true },
  ],
  [
    "for what completed again",
    { ids: [pod], completed: [pod], ...backoff(0, 5_000) },
    { type: "backOff", requeueAfterMs: 5_000, conditions: [{ type: "Reconciling", reason: "BackOff" }] },
  ],
  [
    "not for what else is lacking",
    { ids: [pod], completed: [pod], lacksMore: true, ...backoff(0, 5_000) },
    update("Repairing", { replaced: [], postponed: [pod] }),
  ],
  ["not with a new spec", { ...edited, ...newSpec, ...backoff(5_000) }, update("Updating")],
]);

describe("the status of an object that needs nothing", () => {
  const condition = (type: string, reason: string): Condition => {
    return { type, status: "True", reason, message: "", observedGeneration: 3, lastTransitionTime: "" };
  };
  const having = (...conditions: Condition[]): Changes => ({
    status: { ...facts().object.status, conditions: [...ready("True", 3), ...conditions] },
  });
  const conflictOverMs = (ms: number) => ({ repairMs: 0, replacementMs: 0, conflictOverMs: ms });
  const unknown = { type: "DriftUnknown", status: "True", reason: "Away", message: "", observedGeneration: 3 } as const;
  const cases: [string, Changes, string[], number][] = [
    ["stays as it is", {}, [], 0],
    [
      "says no longer that an update runs that this process saw succeed",
      { ...having(condition("Reconciling", "Repairing")), attempt: attempt({ outcome: "succeeded" }) },
      ["Reconciling=False"],
      0,
    ],
    ["says no longer that it backs off", having(condition("Reconciling", "BackOff")), ["Reconciling=False"], 0],
    [
      "still says that a conflict continues",
      { ...having(condition("FieldConflict", "RepairsReverted")), ...conflictOverMs(7_000) },
      [],
      7_000,
    ],
    [
      "says that a conflict is over",
      having(condition("FieldConflict", "RepairsReverted")),
      ["Synced=True", "Reconciling=False", "Stalled=False", "FieldConflict=False"],
      0,
    ],
    [
      "is still refreshed when a conflict is over",
      { ...having(condition("FieldConflict", "RepairsReverted")), refreshMs: 60_000 },
      ["Synced=True", "Reconciling=False", "Stalled=False", "FieldConflict=False"],
      60_000,
    ],
    ["says that drift is unknown", { unknown: unknown }, ["DriftUnknown=True"], 0],
    ["says that once", { ...having({ ...unknown, lastTransitionTime: "" }), unknown: unknown }, [], 0],
  ];
  it.each(cases)("%s", (_, changes, expected, requeueAfterMs) => {
    const plan = decide(facts(changes));
    expect(plan).toMatchObject({ type: "nothing", requeueAfterMs });
    const said = plan.type === "nothing" ? plan.conditions : [];
    expect(said.map(({ type, status }) => `${type}=${status}`)).toEqual(expected);
  });

  it.each<[string, Changes, string]>([
    ["a new spec", newSpec, "The spec has changed"],
    ["an edited resource", { edited: [pod], missing: [], contents: [] }, "Pod default/a is not as it was applied"],
    ["a missing resource", { edited: [], missing: [pod], contents: [] }, "Pod default/a is missing"],
    ["what was compared", { polled: "row x was missing" }, "row x was missing"],
  ])("says during a pause that %s waits, and is not synced", (_, changes, text) => {
    const plan = decide(facts({ paused: true, ...changes }));
    const told = {
      status: "False",
      reason: "Paused",
      message: expect.stringMatching(`nothing is updated or deleted. ${text}$`),
    };
    expect(plan).toMatchObject({ type: "pause", conditions: [{}, {}, { type: "Synced", ...told }] });
  });

  it("is synced after a pause in which what waited went, and repaired or updated where it did not", () => {
    const status = {
      ...REST,
      conditions: ready("True", 3).map((one) => ({ ...one, status: "False" as const, reason: "Paused" })),
    };
    expect(decide(facts({ status }))).toMatchObject({
      type: "nothing",
      conditions: [{ type: "Synced", status: "True" }, { type: "Reconciling" }, { type: "Stalled" }],
    });
    expect(decide(facts({ status, ...drifted }))).toMatchObject(update("Repairing"));
    expect(decide(facts({ status, ...newSpec }))).toMatchObject(update("Updating"));
  });

  it("says during a pause as well that drift is unknown", () => {
    const conditions = [...PAUSED, unknown];
    expect(decide(facts({ paused: true, unknown: unknown }))).toMatchObject({ type: "pause", conditions });
  });
});

const unfinished: Changes = { status: { ...failed, observedGeneration: 2 } };
const cutOff: Changes = { metadata: { ...deleted, generation: 4 }, ...unfinished };
const finishing = (outcome: Attempt["outcome"]) => attempt({ generation: 4, finishes: true, outcome });
const deleting = [{ ...ready("True", 3)[0], type: "Reconciling", reason: "Deleting" }] as Condition[];
decisions("how an object is updated and destroyed", [
  ["a first update is reported only when it takes long", { status: {} }, { progressReport: "late" }],
  ["and so is one to a new spec", newSpec, { progressReport: "late" }],
  ["a repair before it begins, as nothing else tells of it", { ids: ["a"] }, { progressReport: "before" }],
  ["one that is tried again is reported", { status: failed }, { progressReport: "beside" }],
  [
    "one after a failure may find untracked resources",
    { status: failed, attempt: attempt({ outcome: "retryable" }) },
    { mayHaveUntracked: true },
  ],
  [
    "one after a success does not",
    { program: "p2", attempt: attempt({ outcome: "succeeded" }) },
    { mayHaveUntracked: false },
  ],
  ["after a success it is left alone", { status: {} }, { looksAgain: false }],
  ["but not where its kind maintains something", { status: {}, maintained: true }, { looksAgain: true }],
  [
    "nor where untracked resources are alive that may be one too many",
    { status: {}, readsLive: true },
    { looksAgain: true },
  ],
  [
    "nor where a replacement is postponed",
    { ...drifted, completed: [pod], lacksMore: true, repairMs: 0, replacementMs: 9, conflictOverMs: 9 },
    { postponed: [pod], looksAgain: true },
  ],
  [
    "resources are deleted with it",
    { metadata: deleted },
    { type: "destroy", release: false, progressReported: false },
  ],
  ["or stay, by its deletion policy", { metadata: deleted, releases: true }, { release: true }],
  [
    "an object that is gone gets no status, and no update",
    { metadata: { ...deleted, generation: 4 }, isTombstone: true, ...unfinished },
    { type: "destroy", progressReported: true, mayHaveUntracked: true },
  ],
  [
    "its deletion is reported once",
    { metadata: deleted, status: { ...REST, conditions: deleting } },
    { progressReported: true },
  ],
  [
    "an update that may have been cut off is finished first",
    cutOff,
    { type: "finish", cause: "Finishing", gate: "none" },
  ],
  ["and until a failure passes that hides what it has made", { ...cutOff, attempt: finishing("retryable") }, FINISH],
  ["but once where it fails for good", { ...cutOff, attempt: finishing("terminal") }, DESTROY],
  ["once where it waits for something", { ...cutOff, attempt: finishing("pending") }, DESTROY],
  ["once where it succeeds", { ...cutOff, attempt: finishing("succeeded") }, DESTROY],
  [
    "once where marks lead to all that it made",
    { ...cutOff, adopts: true, attempt: finishing("retryable") },
    { type: "destroy", mayHaveUntracked: true },
  ],
  ["once where all of it stays", { ...cutOff, releases: true, attempt: finishing("retryable") }, RELEASE],
  [
    "again by a process that does not know of a failure, of which the status tells",
    { metadata: deleted, status: { ...REST, conditions: [told("Reconciling", "Finishing")] } },
    FINISH,
  ],
  [
    "whatever an update before the deletion came to",
    { ...cutOff, attempt: attempt({ generation: 4, outcome: "retryable" }) },
    FINISH,
  ],
  [
    "but not where the deletion has ended it, and all that it made is recorded",
    { ...cutOff, isRecorded: true },
    { type: "destroy", mayHaveUntracked: true },
  ],
  [
    "nor where that leaves its resources",
    { ...cutOff, isRecorded: true, releases: true },
    { type: "destroy", release: true },
  ],
  [
    "nor where the deletion needs an approval",
    { ...cutOff, isRecorded: true, mode: "Propose" },
    { type: "destroy", gate: "all" },
  ],
  [
    "but not what was changed during a pause",
    { metadata: { ...deleted, generation: 5 }, status: { ...REST, conditions: [paused] } },
    DESTROY,
  ],
  [
    "nor anything more once the deletion has begun",
    { metadata: { ...deleted, generation: 5 }, status: { ...REST, conditions: deleting } },
    DESTROY,
  ],
]);

it.each<[string, Changes, boolean]>([
  ["before nothing else is done", {}, true],
  ["before a repair", { ids: ["v1/Pod/default/a"] }, true],
  ["before another try", { attempt: attempt({ outcome: "retryable" }) }, true],
  [
    "not before the update to a new spec: what that calls for may not fit what there is, as with a quota's scopes",
    { metadata: { ...facts().object.metadata, generation: 4 } },
    false,
  ],
  ["not during a pause", { paused: true }, false],
  ["not where the kind maintains nothing", { maintained: false }, false],
  ["not before the first update", { status: {} }, false],
  ["not before a destroy", { metadata: deleted }, false],
])("resources are maintained %s", (_, changes, expected) => {
  const found = facts({ maintained: true, ...changes });
  expect(maintainsBefore(found, decide(found))).toBe(expected);
});

describe("a kind whose resources are compared from time to time", () => {
  it("compares them when that is due, and looks again by then", () => {
    expect(decide(facts({ refreshMs: 5000 }))).toMatchObject({ type: "nothing", requeueAfterMs: 5000 });
    expect(decide(facts({ refreshMs: -1 }))).toMatchObject(update("Refreshing", { refresh: true }));
  });

  it("does so with an update for what an object reads that has changed", () => {
    expect(decide(facts({ changedReads: ["labels or annotations"] }))).toMatchObject({ cause: "Updating" });
  });

  it("never while it is paused, and not before a failure that only its author can correct", () => {
    expect(decide(facts({ refreshMs: -1, paused: true }))).toMatchObject(PAUSE);
    expect(decide(facts({ refreshMs: -1, attempt: attempt() }))).toMatchObject(NOTHING);
  });
});

/** After a preview in this mode; with changes of the facts that it was of, and of the preview. */
function previewed<M extends Mode>(mode: M, of: Changes = {}, changes: object = {}) {
  const { object, drift } = facts({ mode, ...of });
  const { uid, generation } = object.metadata;
  const { ids: drifted } = drift;
  const state = previewedState(facts({ mode, ...of }));
  const last = { ...attempt(), uid, generation, drifted, outcome: "previewed" as const, of: state, untilMs: 0 };
  return { mode, ...of, preview: { ...last, ...changes } };
}
const observed = (changes: object = {}) => previewed("Observe", {}, changes);
const lost: Changes = { metadata: { ...deleted, generation: 4 }, unlisted: true };
decisions("a deletion whose state is lost", [
  ["is left to the destroy to tell, until a user decides", lost, DESTROY],
  ["takes over first what marks lead to", { ...lost, adopts: true }, FINISH],
  ["also where its deletion has ended an update", { ...lost, adopts: true, isRecorded: true }, FINISH],
  ["goes by the marks alone when that fails", { ...lost, adopts: true, attempt: finishing("terminal") }, DESTROY],
  ["takes over first what a user wants to be adopted", { ...lost, stateDecision: "Adopt" }, FINISH],
  [
    "does so until it succeeds, as nothing else leads to it",
    { ...lost, stateDecision: "Adopt", attempt: finishing("terminal") },
    FINISH,
  ],
  ["takes over nothing that is to be forgotten", { ...lost, adopts: true, stateDecision: "Forget" }, DESTROY],
  ["takes over nothing that stays", { ...lost, adopts: true, releases: true }, RELEASE],
  ["updates nothing that is gone", { ...lost, adopts: true, isTombstone: true }, DESTROY],
  ["updates nothing without an approval", { ...lost, adopts: true, mode: "Propose" }, { type: "destroy", gate: "all" }],
]);
decisions("a deletion that leaves the resources behind", [
  ["is recorded first", { metadata: deleted, orphaned: "seen" }, { type: "recordOrphan" }],
  ["is recorded during a pause", { metadata: deleted, orphaned: "seen", paused: true }, { type: "recordOrphan" }],
  ["releases them once it was recorded", { metadata: deleted, orphaned: "recorded", releases: true }, RELEASE],
  [
    "is not recorded on what is only observed, which is left alone",
    { metadata: deleted, orphaned: "seen", releases: true, mode: "Observe" },
    RELEASE,
  ],
  [
    "is not recorded on what is gone",
    { metadata: deleted, orphaned: "seen", releases: true, isTombstone: true },
    RELEASE,
  ],
]);
decisions("an object that is only observed", [
  ["is previewed when nothing is known of it", { mode: "Observe" }, ONLY_PREVIEWED],
  ["needs nothing after that", observed(), { type: "nothing", conditions: [] }],
  ["gets no finalizer", { ...observed(), hasFinalizer: false }, NOTHING],
  ["is previewed again for another spec", { ...observed(), ...newSpec }, ONLY_PREVIEWED],
  ["is previewed again for another program", { ...observed(), program: "p2" }, ONLY_PREVIEWED],
  ["is previewed again when something drifts", { ...observed(), ...drifted }, ONLY_PREVIEWED],
  [
    "is previewed again when what it refers to has changed",
    { ...observed(), changedReads: ["v1/ConfigMap/a/b"] },
    ONLY_PREVIEWED,
  ],
  ["is previewed again as a user asks for it", { ...observed(), requested: "now" }, ONLY_PREVIEWED],
  ["is previewed again after a failure that may pass", observed({ outcome: "retryable" }), ONLY_PREVIEWED],
  ["is not after one that its author must correct", observed({ outcome: "terminal" }), NOTHING],
  ["is still paused", { ...observed(), paused: true }, PAUSE],
  ["leaves all that it made when it is deleted", { ...observed(), metadata: deleted }, RELEASE],
  [
    "does so when it was deleted in spite of its finalizer",
    { ...observed(), isTombstone: true, metadata: deleted },
    RELEASE,
  ],
  ["goes at once when it was never applied", { ...observed(), hasFinalizer: false, metadata: deleted }, NOTHING],
]);
decisions("an object that was observed and is applied again", [
  [
    "is updated where that would change something",
    {
      preview: observed().preview,
      status: { ...failed, conditions: [told("Synced", "Observed", "False")] },
    },
    update("Retrying", { refresh: true }),
  ],
  [
    "is updated where it was never applied",
    { status: { conditions: [told("Synced", "Observed", "False")] } },
    update("Creating"),
  ],
]);

const waits = (of: Changes = {}) => previewed("Propose", { ...newSpec, ...of });
decisions("an object whose changes wait for an approval", [
  ["needs nothing while nothing changes", { mode: "Propose" }, NOTHING],
  [
    "is previewed for another spec",
    { mode: "Propose", ...newSpec },
    { type: "update", gate: "all", cause: "Updating" },
  ],
  ["is previewed for another program", { mode: "Propose", program: "p2" }, { type: "update", gate: "all" }],
  [
    "is previewed for another program whatever a rollout says",
    { mode: "Propose", program: "p2", rolledOut: false },
    { type: "update", gate: "all", onlyProgram: false },
  ],
  ["is previewed when something drifts", { mode: "Propose", ...drifted }, { type: "update", gate: "all" }],
  ["waits while its plan does", waits(), { type: "nothing", requeueAfterMs: 0 }],
  [
    "looks again when a rejection expires",
    { ...waits(), previewedForMs: 60_000 },
    { type: "nothing", requeueAfterMs: 60_000 },
  ],
  ["gets its finalizer back", { ...waits(), hasFinalizer: false }, ADD_FINALIZER],
  ["gets none before the first update", { ...waits({ status: {}, hasFinalizer: false }) }, NOTHING],
  ["is previewed again for another spec", { ...waits(), metadata: { uid: "uid-1", generation: 9 } }, PREVIEWED],
  ["is previewed again for another program", { ...waits(), program: "p2" }, PREVIEWED],
  ["is previewed again when something drifts", { ...waits(), ...drifted }, PREVIEWED],
  [
    "is previewed again when what has drifted changes once more",
    { ...waits(), edited: [], missing: [], contents: ["other"] },
    PREVIEWED,
  ],
  ["is previewed again when other fields are left to others", { ...waits(), ignoreFields: ["a"] }, PREVIEWED],
  ["is previewed again as a user asks for it", { ...waits(), requested: "now" }, PREVIEWED],
  ["is previewed again when its plan, or the decision, is another", { ...waits(), preview: undefined }, PREVIEWED],
  ["is updated when the mode is loosened", { ...waits(), mode: "Apply" }, { type: "update", gate: "none" }],
  ["is previewed when the mode gets stricter", { ...waits(), mode: "Observe" }, ONLY_PREVIEWED],
  ["is still paused", { ...waits(), paused: true }, PAUSE],
  [
    "is not destroyed without an approval when it is deleted, and finishes no update before",
    { mode: "Propose", metadata: deleted, status: { ...failed } },
    { type: "destroy", gate: "all" },
  ],
  ["stays while its deletion waits", previewed("Propose", { metadata: deleted }), NOTHING],
  [
    "is previewed again when its resources are to stay",
    { ...previewed("Propose", { metadata: deleted }), releases: true },
    { type: "destroy", gate: "all", release: true },
  ],
  ["goes at once when it was never applied", { mode: "Propose", hasFinalizer: false, metadata: deleted }, NOTHING],
]);
/** When this process knows of no preview that still holds: the plan was approved, or the operator has started again. */
const decided = (planReason: string | undefined, of: Changes = {}): Changes => {
  const status = { ...facts().object.status, conditions: [told("Synced", "WaitsForApproval", "False")] };
  return { mode: "Propose", status, planReason, ...of };
};
decisions("an approved change runs for what its plan was made for:", [
  ["a new spec", decided("SpecChanged", drifted), update("Updating", { progressReport: "beside" })],
  ["a new program", decided("ProgramChanged"), update("ProgramChanged", { refresh: true })],
  ["a request", decided("Requested"), { cause: "Requested" }],
  ["a request that comes later", decided("SpecChanged", { requested: "now" }), { cause: "Requested" }],
  ["a drift", decided("Drifted", drifted), { cause: "Repairing", onlyLacking: false, progressReport: "beside" }],
  ["a drift that no watch shows", decided("Drifted"), { cause: "Refreshing" }],
  [
    "no rollout holds it up",
    decided("ProgramChanged", { mode: "ProposeDestructive", program: "p2", rolledOut: false }),
    { type: "update", onlyProgram: false },
  ],
  ["what differs, where the plan is lost", decided(undefined, { program: "p2" }), { cause: "ProgramChanged" }],
  ["what differs, where others have written the plan", decided("Other", drifted), { cause: "Repairing" }],
  ["a spec, where nothing else differs", decided(undefined), { cause: "Updating" }],
  ["also when the mode is loosened", decided("SpecChanged", { mode: "Apply" }), { gate: "none", cause: "Updating" }],
  [
    "but it is tried again after a failure",
    decided("SpecChanged", { status: { ...facts().object.status, conditions: ready("False", 3) } }),
    update("Retrying"),
  ],
]);
decisions("an object whose destructive changes wait for an approval", [
  ["is previewed", { mode: "ProposeDestructive", ...newSpec }, { type: "update", gate: "destructive" }],
  ["waits while its plan does", previewed("ProposeDestructive", newSpec), NOTHING],
  [
    "takes part in a rollout",
    { mode: "ProposeDestructive", program: "p2" },
    { gate: "destructive", onlyProgram: true },
  ],
  ["waits for a rollout", { mode: "ProposeDestructive", program: "p2", rolledOut: false }, NOTHING],
  [
    "is not destroyed without an approval",
    { mode: "ProposeDestructive", metadata: deleted },
    { type: "destroy", gate: "destructive" },
  ],
]);

describe("maintenance", () => {
  it("does not write what was not approved", () => {
    const base = facts({ maintained: true, mode: "Propose" });
    expect(maintainsBefore(base, decide(base))).toBe(false);
  });

  it("does not reach what is only observed", () => {
    const base = facts({ maintained: true });
    expect(maintainsBefore(base, decide(base))).toBe(true);
    const held = facts({ maintained: true, ...observed() });
    expect(maintainsBefore(held, decide(held))).toBe(false);
  });
});
