import { describe, expect, it } from "vitest";
import { failedConditions } from "../../src/controller/conditions";
import { decide, maintainsBefore } from "../../src/controller/decide";
import { type Attempt, type ObjectFacts, previewedState } from "../../src/controller/facts";
import type { Condition } from "../../stacks/contract/condition";
import type { Mode } from "../../stacks/contract/mode";
import { attempt, type Changes, facts, synced, told } from "./facts";

const REST = facts().object.status;
/** An object whose status has these conditions. */
const saying = (...conditions: Condition[]) => ({ status: { ...REST, conditions } });
/** The same of one that is synced. */
const having = (...conditions: Condition[]) => saying(synced("True"), ...conditions);
const failed = { conditions: [synced("False")], stack: REST.stack } as ObjectFacts["status"];
const paused = told("Paused", "Paused");
const deleting = told("Reconciling", "Deleting");
const deleted = { uid: "uid-1", generation: 3, deletionTimestamp: "2026-01-01T00:00:00Z" };
const newSpec = { metadata: { uid: "uid-1", generation: 4 } };
const pod = "v1/Pod/default/a";
const drifted = { ids: [pod] };
const pending = attempt({ outcome: "pending" });
const retryable = attempt({ outcome: "retryable" });
const succeeded = attempt({ outcome: "succeeded" });

/* What is decided, as far as it matters to a case. */
const NOTHING = { type: "nothing" };
const UPDATE = { type: "update" };
const UPDATING = { type: "update", cause: "Updating" };
const RETRYING = { type: "update", cause: "Retrying" };
const REPAIRING = { type: "update", cause: "Repairing" };
const PROGRAM_CHANGED = { type: "update", cause: "ProgramChanged" };
const UPDATE_WITH_GATE = { type: "update", gate: "all" };
const DESTROY_WITH_GATE = { type: "destroy", gate: "all" };
const PREVIEWED = { gate: "all" };
const ONLY_PREVIEWED = { type: "preview" };
const WAIT = { type: "wait" };
const PAUSE = { type: "pause" };
const PAUSED = [{ type: "Reconciling" }, { type: "Paused", status: "True", reason: "Paused" }];
const RESUMED = { type: "nothing", conditions: [] };
const FINISH = { type: "finish" };
const ADD_FINALIZER = { type: "addFinalizer" };
const DESTROY = { type: "destroy" };
const RELEASE = { type: "destroy", release: true };
const RECORD_ORPHAN = { type: "recordOrphan" };

/** A table of decisions: what is different from an object at rest and from `base`, and what of the action matters. */
function decisions(title: string, base: Changes, cases: [string, Changes, object][]): void {
  describe(title, () => {
    it.each(cases)("%s", (_, changes, expected) => {
      expect(decide(facts({ ...base, ...changes }))).toMatchObject(expected);
    });
  });
}

const newProgram = { program: "p2" };
decisions("an object that is at rest", {}, [
  ["needs nothing, also after a restart that forgot the last attempt", {}, NOTHING],
  ["needs nothing when this process updated it", { attempt: succeeded }, NOTHING],
  ["is updated when its spec changes", newSpec, { ...UPDATING, refresh: false }],
  ["is updated when the program changes", newProgram, { ...PROGRAM_CHANGED, refresh: false }],
  ["is updated when it leaves other fields to others", { ignoreFields: ["Deployment:spec.replicas"] }, UPDATING],
  ["is repaired, with a refresh, when something has drifted", drifted, { ...REPAIRING, refresh: true }],
  ["is refreshed along with a new spec when something has drifted", { ...newSpec, ...drifted }, { refresh: true }],
  ["is refreshed along with a new program then", { ...newProgram, ...drifted }, { ...PROGRAM_CHANGED, refresh: true }],
]);

const backoff = (repairMs: number, replacementMs = 0, conflictOverMs = 0): Changes => {
  return { repairMs, replacementMs, conflictOverMs };
};
const fought = saying(told("Synced", "FieldConflict", "False"), told("FieldConflict", "RepairsReverted"));
const settled = [{ type: "Synced", status: "True" }, {}, {}, { type: "FieldConflict", status: "False" }];
decisions("an object with a field that others change back", fought, [
  ["is not updated for that alone", backoff(-1, -1, 7_000), { ...NOTHING, requeueAfterMs: 7_000 }],
  ["is repaired when the time has come", { ...drifted, ...backoff(0) }, REPAIRING],
  [
    "waits until then, and says nothing new",
    { ...drifted, ...backoff(5_000, 0, 5_000) },
    { type: "backOff", conditions: [], requeueAfterMs: 5_000 },
  ],
  ["is updated at once to a new spec", newSpec, UPDATING],
  ["is synced again when a repair has stayed", backoff(-1, -1, 0), { conditions: settled }],
]);

const progressing = having(told("Ready", "Progressing", "False"), told("Reconciling", "Progressing"));
decisions("an object whose resources do not work yet", progressing, [
  ["needs nothing: only Synced decides", {}, { type: "nothing", conditions: [] }],
]);

const ofPredecessor = attempt({ uid: "uid-of-predecessor", outcome: "retryable" });
const failedAtFirst: Changes = { status: { conditions: [synced("False")] }, attempt: retryable };
decisions("an object that was never updated with success", {}, [
  ["is created", { hasFinalizer: false, status: {} }, { type: "update", cause: "Creating", refresh: false }],
  ["is tried again after an attempt that time may heal", failedAtFirst, { ...RETRYING, refresh: false }],
  ["is created when a predecessor was tried", { status: {}, attempt: ofPredecessor }, { cause: "Creating" }],
]);

const unreported = { status: { ...failed, conditions: [synced("Unknown")] } };
const unreportedRepair = having(told("Reconciling", "Repairing"));
decisions("an object whose last update failed", {}, [
  ["is tried again with a refresh, whatever was done", { status: failed }, { ...RETRYING, refresh: true }],
  ["is tried again when an update of this generation never reported its end", unreported, RETRYING],
  [
    "is tried again when a repair never reported its end, although what it repaired is there",
    unreportedRepair,
    { ...RETRYING, refresh: true, mayHaveUntracked: true },
  ],
  ["waits for its author when only the author can help", { status: failed, attempt: attempt() }, NOTHING],
  ["waits for its author before its first success", { status: {}, attempt: attempt() }, NOTHING],
]);

decisions("an object that waits for its author waits no longer when", { status: failed, attempt: attempt() }, [
  ["its spec changes", newSpec, UPDATE],
  ["the program changes", newProgram, UPDATE],
  ["something else drifts", drifted, UPDATE],
  ["it was deleted and created again", { metadata: { uid: "uid-2", generation: 3 } }, UPDATE],
  ["the operator restarts", { attempt: undefined }, UPDATE],
]);

const foreign = { errorClass: "terminal", reason: "BackendForeign", message: "it is another cluster's" } as const;
const foreignToldOf = { refusal: { ...foreign, message: "" }, ...having(told("Stalled", "BackendForeign")) };
const stalled = { type: "Stalled", status: "True", reason: "BackendForeign" };
const noMoreStalled = { type: "nothing", conditions: [{ type: "Stalled", status: "False" }] };
decisions("an object at rest, while the state's backend is another operator's,", {}, [
  ["tells that nothing is looked after", { refusal: foreign }, { type: "nothing", conditions: [stalled] }],
  ["tells it once", foreignToldOf, RESUMED],
  ["tells when that is over", having(told("Stalled", "BackendUnknown")), noMoreStalled],
  ["leaves what has stalled it besides", having(told("Stalled", "TableNotFound")), RESUMED],
  ["tells nothing once it is deleted", { refusal: foreign, metadata: deleted, hasFinalizer: false }, RESUMED],
]);

const refused = failedConditions([{ message: "no such table", reason: "TableNotFound", errorClass: "terminal" }]);
const lastTransitionTime = "2026-01-01T00:00:00Z";
const written = refused.filter(({ type }) => type !== "Reconciling").map((c) => ({ ...c, lastTransitionTime }));
const corrected = {
  type: "nothing",
  conditions: [
    { type: "Synced", status: "False" },
    { type: "Stalled", status: "True" },
  ],
};
decisions("a status that says Ready of an object whose last update failed", {}, [
  ["is corrected when only the author can help", { attempt: attempt({ conditions: refused }) }, corrected],
  ["is corrected when it was wiped", { status: {}, attempt: attempt({ conditions: refused }) }, corrected],
  ["does not end the retries of what time may heal", { attempt: retryable }, { ...RETRYING, refresh: true }],
  ["does not end the retries of what waited for something else", { attempt: pending }, { ...RETRYING, refresh: true }],
  [
    "is not touched when it says what that update wrote",
    { status: { ...failed, conditions: written } as ObjectFacts["status"], attempt: attempt({ conditions: refused }) },
    { conditions: [] },
  ],
]);

const waiting = { status: failed, attempt: pending, blockedMs: 1_000 };
decisions("an object whose last attempt waits for something else to end", waiting, [
  ["waits for that", {}, WAIT],
  ["waits for that with its destroy as well", { metadata: deleted }, WAIT],
  ["is updated when that is gone", { blockedMs: 0 }, UPDATE],
  ["is updated when its spec changes", newSpec, UPDATE],
  ["is updated when something else drifts", drifted, UPDATE],
  ["is updated when it is asked to", { requested: "now" }, UPDATE],
  ["is destroyed when that is gone", { metadata: deleted, blockedMs: 0, status: REST }, DESTROY],
]);

decisions("an object that a user took the finalizer off", { hasFinalizer: false }, [
  ["gets it back at rest", {}, ADD_FINALIZER],
  ["gets it back while it waits for its author", { status: failed, attempt: attempt() }, ADD_FINALIZER],
  ["gets it back while it waits for something else to end", waiting, ADD_FINALIZER],
  ["gets it back while its repair has to wait", { ...drifted, ...backoff(9, 0, 9) }, ADD_FINALIZER],
  ["gets it with its update, where it needs one", newProgram, UPDATE],
  ["does not get it during a pause", { paused: true }, { type: "pause", conditions: PAUSED }],
  ["does not get it when it is being deleted", { metadata: deleted }, NOTHING],
  ["does not get it when it has made nothing", { status: {}, attempt: attempt() }, NOTHING],
]);

const wrong: Changes = { status: { ...failed, observedGeneration: 3 }, attempt: attempt(), ...newProgram, ...drifted };
const pausedDeletion = [...PAUSED, { type: "Synced", status: "False", reason: "Paused" }];
const waitsForOthers = expect.stringMatching(/waits for its other finalizers: example.com\/backup$/);
decisions("an object that is being deleted", { metadata: deleted }, [
  ["is destroyed while it carries the finalizer, whatever else is wrong with it", wrong, DESTROY],
  ["is left alone during a pause, and not synced", { paused: true }, { type: "pause", conditions: pausedDeletion }],
  ["is destroyed in spite of a pause that no one can end, as it is gone", { paused: true, isTombstone: true }, DESTROY],
  [
    "says whose finalizers keep it once its own is gone",
    { hasFinalizer: false, otherFinalizers: ["example.com/backup"] },
    {
      type: "nothing",
      conditions: [
        { type: "Synced", status: "False", message: waitsForOthers },
        { type: "Reconciling", status: "True", reason: "Deleting" },
      ],
    },
  ],
  ["is left alone without the finalizer, as nothing is left of it", { hasFinalizer: false, status: {} }, NOTHING],
]);

decisions("an object that a rollout has not reached", { program: "p2", rolledOut: false }, [
  ["keeps its program", {}, { type: "nothing", conditions: [] }],
  ["has its status corrected", having(paused), RESUMED],
  ["gets its finalizer back", { hasFinalizer: false }, ADD_FINALIZER],
  ["is updated when it drifts", drifted, PROGRAM_CHANGED],
  ["is updated when its spec changes", newSpec, { cause: "Updating" }],
]);

const edited: Changes = { ...drifted, edited: [pod], missing: [], contents: [] };
const ended: Changes = { ...drifted, completed: [pod] };
decisions("a repair waits", {}, [
  ["not while repairs last", { ...edited, ...backoff(-1) }, REPAIRING],
  [
    "for another controller that undoes each",
    { ...edited, ...backoff(9_999.5) },
    { type: "backOff", requeueAfterMs: 10_000, conditions: [] },
  ],
  ["not for what completed the first time", ended, { ...UPDATE, replaced: [pod], postponed: [], onlyLacking: true }],
  [
    "for what completed again",
    { ...ended, ...backoff(0, 5_000) },
    { type: "backOff", requeueAfterMs: 5_000, conditions: [{ type: "Reconciling", reason: "BackOff" }] },
  ],
  [
    "not for what else is lacking",
    { ...ended, lacksMore: true, ...backoff(0, 5_000) },
    { ...REPAIRING, replaced: [], postponed: [pod] },
  ],
  ["not with a new spec", { ...edited, ...newSpec, ...backoff(5_000) }, UPDATING],
]);

describe("the status of an object that needs nothing", () => {
  const conflict = having(told("FieldConflict", "RepairsReverted"));
  const over = ["Synced=True", "Reconciling=False", "Stalled=False", "FieldConflict=False"];
  const unknown = told("DriftUnknown", "Away");
  const seenToSucceed = { ...having(told("Reconciling", "Repairing")), attempt: succeeded };
  it.each<[string, Changes, string[], number]>([
    ["stays as it is", {}, [], 0],
    ["says no longer that an update runs that this process saw succeed", seenToSucceed, ["Reconciling=False"], 0],
    ["says no longer that it backs off", having(told("Reconciling", "BackOff")), ["Reconciling=False"], 0],
    ["still says that a conflict continues", { ...conflict, ...backoff(0, 0, 7_000) }, [], 7_000],
    ["says that a conflict is over", conflict, over, 0],
    ["is still refreshed when a conflict is over", { ...conflict, refreshMs: 60_000 }, over, 60_000],
    ["says that drift is unknown", { unknown }, ["DriftUnknown=True"], 0],
    ["says that once", { ...having(unknown), unknown }, [], 0],
  ])("%s", (_, changes, expected, requeueAfterMs) => {
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
    const message = expect.stringMatching(`nothing is updated or deleted. ${text}$`);
    const notSynced = { type: "Synced", status: "False", reason: "Paused", message };
    expect(decide(facts({ paused: true, ...changes }))).toMatchObject({
      type: "pause",
      conditions: [{}, {}, notSynced],
    });
  });

  it("is synced after a pause in which what waited went, and repaired or updated where it did not", () => {
    const { status } = saying(told("Synced", "Paused", "False"));
    expect(decide(facts({ status }))).toMatchObject({
      type: "nothing",
      conditions: [{ type: "Synced", status: "True" }, { type: "Reconciling" }, { type: "Stalled" }],
    });
    expect(decide(facts({ status, ...drifted }))).toMatchObject(REPAIRING);
    expect(decide(facts({ status, ...newSpec }))).toMatchObject(UPDATING);
  });

  it("says during a pause as well that drift is unknown", () => {
    const conditions = [...PAUSED, unknown];
    expect(decide(facts({ paused: true, unknown }))).toMatchObject({ type: "pause", conditions });
  });
});

const REPORTED_LATE = { progressReport: "late" };
const LOOKS_AGAIN = { looksAgain: true };
const FINISH_WITHOUT_GATE = { type: "finish", cause: "Finishing", gate: "none" };
const CLEAN_UP = { type: "destroy", mayHaveUntracked: true };
const UNREPORTED = { type: "destroy", release: false, progressReported: false };
const unfinished: Changes = { status: { ...failed, observedGeneration: 2 } };
const cutOff: Changes = { metadata: { ...deleted, generation: 4 }, ...unfinished };
const later = { metadata: { ...deleted, generation: 5 } };
const finishing = (outcome: Attempt["outcome"]) => attempt({ generation: 4, finishes: true, outcome });
const failedBefore = attempt({ generation: 4, outcome: "retryable" });
const postponed: Changes = { ...ended, lacksMore: true, ...backoff(0, 9, 9) };
decisions("how an object is updated", {}, [
  ["a first update is reported only when it takes long", { status: {} }, REPORTED_LATE],
  ["and so is one to a new spec", newSpec, REPORTED_LATE],
  ["a repair before it begins, as nothing else tells of it", drifted, { progressReport: "before" }],
  ["one that is tried again is reported", { status: failed }, { progressReport: "beside" }],
  ["one after a failure may find more", { status: failed, attempt: retryable }, { mayHaveUntracked: true }],
  ["one after a success does not", { ...newProgram, attempt: succeeded }, { mayHaveUntracked: false }],
  ["after a success it is left alone", { status: {} }, { looksAgain: false }],
  ["but not where its kind maintains something", { status: {}, maintained: true }, LOOKS_AGAIN],
  ["nor where untracked resources are alive that may be one too many", { status: {}, readsLive: true }, LOOKS_AGAIN],
  ["nor where a replacement is postponed", postponed, { postponed: [pod], looksAgain: true }],
]);
decisions("how an object is destroyed", { metadata: deleted }, [
  ["resources are deleted with it", {}, UNREPORTED],
  ["or stay, by its deletion policy", { releases: true }, { release: true }],
  ["its deletion is reported once", saying(deleting), { progressReported: true }],
  ["one that is gone gets no status", { ...cutOff, isTombstone: true }, { ...CLEAN_UP, progressReported: true }],
]);
decisions("an update that may have been cut off before a deletion is finished first", cutOff, [
  ["whatever gate others have", {}, FINISH_WITHOUT_GATE],
  ["until a failure passes that hides what it has made", { attempt: finishing("retryable") }, FINISH],
  ["but once where it fails for good", { attempt: finishing("terminal") }, DESTROY],
  ["once where it waits for something", { attempt: finishing("pending") }, DESTROY],
  ["once where it succeeds", { attempt: finishing("succeeded") }, DESTROY],
  ["once where marks lead to all that it made", { adopts: true, attempt: finishing("retryable") }, CLEAN_UP],
  ["once where all of it stays", { releases: true, attempt: finishing("retryable") }, RELEASE],
  ["again where the status tells of it", { metadata: deleted, ...saying(told("Reconciling", "Finishing")) }, FINISH],
  ["whatever an update before the deletion came to", { attempt: failedBefore }, FINISH],
  ["but not where the deletion has ended it, and all that it made is recorded", { isRecorded: true }, CLEAN_UP],
  ["nor where that leaves its resources", { isRecorded: true, releases: true }, RELEASE],
  ["nor where the deletion needs an approval", { isRecorded: true, mode: "Propose" }, DESTROY_WITH_GATE],
  ["but not what was changed during a pause", { ...later, ...saying(paused) }, DESTROY],
  ["nor anything more once the deletion has begun", { ...later, ...saying(deleting) }, DESTROY],
]);

it.each<[string, Changes, boolean]>([
  ["before nothing else is done", {}, true],
  ["before a repair", drifted, true],
  ["before another try", { attempt: retryable }, true],
  ["not before the update to a new spec, which what there is may not fit, as with a quota's scopes", newSpec, false],
  ["not during a pause", { paused: true }, false],
  ["not where the kind maintains nothing", { maintained: false }, false],
  ["not before the first update", { status: {} }, false],
  ["not before a destroy", { metadata: deleted }, false],
  ["not where that was not approved", { mode: "Propose" }, false],
  ["not where the object is only observed", previewed("Observe"), false],
])("resources are maintained %s", (_, changes, expected) => {
  const found = facts({ maintained: true, ...changes });
  expect(maintainsBefore(found, decide(found))).toBe(expected);
});

decisions("a kind whose resources are compared from time to time", {}, [
  ["looks again when that is due", { refreshMs: 5000 }, { type: "nothing", requeueAfterMs: 5000 }],
  ["compares them then", { refreshMs: -1 }, { type: "update", cause: "Refreshing", refresh: true }],
  ["does so with an update for what an object reads", { changedReads: ["labels or annotations"] }, UPDATING],
  ["does not while the object is paused", { refreshMs: -1, paused: true }, PAUSE],
  ["does not after a failure that only its author can correct", { refreshMs: -1, attempt: attempt() }, NOTHING],
]);

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
const terminally = finishing("terminal");
decisions("a deletion whose state is lost", lost, [
  ["is left to the destroy to tell, until a user decides", {}, DESTROY],
  ["takes over first what marks lead to", { adopts: true }, FINISH],
  ["also where its deletion has ended an update", { adopts: true, isRecorded: true }, FINISH],
  ["goes by the marks alone when that fails", { adopts: true, attempt: terminally }, DESTROY],
  ["takes over first what a user wants to be adopted", { stateDecision: "Adopt" }, FINISH],
  ["does so until it succeeds, as nothing else leads to it", { stateDecision: "Adopt", attempt: terminally }, FINISH],
  ["takes over nothing that is to be forgotten", { adopts: true, stateDecision: "Forget" }, DESTROY],
  ["takes over nothing that stays", { adopts: true, releases: true }, RELEASE],
  ["updates nothing that is gone", { adopts: true, isTombstone: true }, DESTROY],
  ["updates nothing without an approval", { adopts: true, mode: "Propose" }, DESTROY_WITH_GATE],
]);
decisions("a deletion that leaves the resources behind", { metadata: deleted, orphaned: "seen" }, [
  ["is recorded first", {}, RECORD_ORPHAN],
  ["is recorded during a pause", { paused: true }, RECORD_ORPHAN],
  ["releases them once it was recorded", { orphaned: "recorded", releases: true }, RELEASE],
  ["is not recorded on what is only observed, which is left alone", { releases: true, mode: "Observe" }, RELEASE],
  ["is not recorded on what is gone", { releases: true, isTombstone: true }, RELEASE],
]);
decisions("an object that is only observed", observed(), [
  ["is previewed when nothing is known of it", { preview: undefined }, ONLY_PREVIEWED],
  ["needs nothing after that", {}, { type: "nothing", conditions: [] }],
  ["gets no finalizer", { hasFinalizer: false }, NOTHING],
  ["is previewed again for another spec", newSpec, ONLY_PREVIEWED],
  ["is previewed again for another program", newProgram, ONLY_PREVIEWED],
  ["is previewed again when something drifts", drifted, ONLY_PREVIEWED],
  ["is previewed again when what it refers to has changed", { changedReads: ["v1/ConfigMap/a/b"] }, ONLY_PREVIEWED],
  ["is previewed again as a user asks for it", { requested: "now" }, ONLY_PREVIEWED],
  ["is previewed again after a failure that may pass", observed({ outcome: "retryable" }), ONLY_PREVIEWED],
  ["is not after one that its author must correct", observed({ outcome: "terminal" }), NOTHING],
  ["is still paused", { paused: true }, PAUSE],
  ["leaves all that it made when it is deleted", { metadata: deleted }, RELEASE],
  ["does so when it was deleted in spite of its finalizer", { isTombstone: true, metadata: deleted }, RELEASE],
  ["goes at once when it was never applied", { hasFinalizer: false, metadata: deleted }, NOTHING],
]);
const asObserved = [told("Synced", "Observed", "False")];
const observedLater = { preview: observed().preview, status: { ...failed, conditions: asObserved } };
decisions("an object that was observed and is applied again", {}, [
  ["is updated where that would change something", observedLater, { ...RETRYING, refresh: true }],
  ["is updated where it was never applied", { status: { conditions: asObserved } }, { ...UPDATE, cause: "Creating" }],
]);

decisions("an object whose changes would wait for an approval", { mode: "Propose" }, [
  ["needs nothing while nothing changes", {}, NOTHING],
  ["is previewed for another spec", newSpec, { ...UPDATE_WITH_GATE, cause: "Updating" }],
  ["is previewed for another program", newProgram, UPDATE_WITH_GATE],
  [
    "is previewed for another program whatever a rollout says",
    { program: "p2", rolledOut: false },
    { ...UPDATE_WITH_GATE, onlyProgram: false },
  ],
  ["is previewed when something drifts", drifted, UPDATE_WITH_GATE],
  ["is not destroyed without one, nor updated before", { metadata: deleted, status: failed }, DESTROY_WITH_GATE],
  ["stays while its deletion waits", previewed("Propose", { metadata: deleted }), NOTHING],
  [
    "is previewed again when its resources are to stay",
    { ...previewed("Propose", { metadata: deleted }), releases: true },
    { ...DESTROY_WITH_GATE, release: true },
  ],
  ["goes at once when it was never applied", { hasFinalizer: false, metadata: deleted }, NOTHING],
]);
decisions("an object whose changes wait for an approval", previewed("Propose", newSpec), [
  ["waits while its plan does", {}, { type: "nothing", requeueAfterMs: 0 }],
  ["looks again when a rejection expires", { previewedForMs: 60_000 }, { type: "nothing", requeueAfterMs: 60_000 }],
  ["gets its finalizer back", { hasFinalizer: false }, ADD_FINALIZER],
  ["gets none before the first update", previewed("Propose", { ...newSpec, status: {}, hasFinalizer: false }), NOTHING],
  ["is previewed again for another spec", { metadata: { uid: "uid-1", generation: 9 } }, PREVIEWED],
  ["is previewed again for another program", newProgram, PREVIEWED],
  ["is previewed again when something drifts", drifted, PREVIEWED],
  ["is previewed again when other contents drift", { edited: [], missing: [], contents: ["other"] }, PREVIEWED],
  ["is previewed again when other fields are left to others", { ignoreFields: ["a"] }, PREVIEWED],
  ["is previewed again as a user asks for it", { requested: "now" }, PREVIEWED],
  ["is previewed again when its plan, or the decision, is another", { preview: undefined }, PREVIEWED],
  ["is updated when the mode is loosened", { mode: "Apply" }, { type: "update", gate: "none" }],
  ["is previewed when the mode gets stricter", { mode: "Observe" }, ONLY_PREVIEWED],
  ["is still paused", { paused: true }, PAUSE],
]);
/** When this process knows of no preview that still holds: the plan was approved, or the operator has started again. */
const decided = (planReason: string | undefined, of: Changes = {}): Changes => {
  return { mode: "Propose", ...saying(told("Synced", "WaitsForApproval", "False")), planReason, ...of };
};
const BESIDE = { progressReport: "beside" };
const rolledOutLater: Changes = { mode: "ProposeDestructive", program: "p2", rolledOut: false };
decisions("an approved change runs for what its plan was made for:", {}, [
  ["a new spec", decided("SpecChanged", drifted), { ...UPDATING, ...BESIDE }],
  ["a new program", decided("ProgramChanged"), { ...PROGRAM_CHANGED, refresh: true }],
  ["a request", decided("Requested"), { cause: "Requested" }],
  ["a request that comes later", decided("SpecChanged", { requested: "now" }), { cause: "Requested" }],
  ["a drift", decided("Drifted", drifted), { ...REPAIRING, onlyLacking: false, ...BESIDE }],
  ["a drift that no watch shows", decided("Drifted"), { cause: "Refreshing" }],
  ["no rollout holds it up", decided("ProgramChanged", rolledOutLater), { type: "update", onlyProgram: false }],
  ["what differs, where the plan is lost", decided(undefined, newProgram), { cause: "ProgramChanged" }],
  ["what differs, where others have written the plan", decided("Other", drifted), { cause: "Repairing" }],
  ["a spec, where nothing else differs", decided(undefined), { cause: "Updating" }],
  ["also when the mode is loosened", decided("SpecChanged", { mode: "Apply" }), { gate: "none", cause: "Updating" }],
  ["but it is tried again after a failure", decided("SpecChanged", saying(synced("False"))), RETRYING],
]);
const DESTRUCTIVE = { gate: "destructive" };
decisions("an object whose destructive changes wait for an approval", { mode: "ProposeDestructive" }, [
  ["is previewed", newSpec, { type: "update", ...DESTRUCTIVE }],
  ["waits while its plan does", previewed("ProposeDestructive", newSpec), NOTHING],
  ["takes part in a rollout", newProgram, { ...DESTRUCTIVE, onlyProgram: true }],
  ["waits for a rollout", { program: "p2", rolledOut: false }, NOTHING],
  ["is not destroyed without an approval", { metadata: deleted }, { type: "destroy", ...DESTRUCTIVE }],
]);
