import { isDeepStrictEqual } from "node:util";
import { type Condition, findCondition, type NewCondition } from "../../stacks/contract/condition";
import { isPaused } from "../../stacks/contract/readiness";
import type { Action, DestroyAction, ProgressReport, UpdateAction } from "./action";
import {
  backOffConditions,
  type Cause,
  CONFLICT,
  conflictOverConditions,
  isUnfinished,
  keptConditions,
  newsAmong,
  notSo,
  PROGRESSING,
  SUCCEEDED_CONDITIONS,
} from "./conditions";
import { type Attempt, type Facts, type ObjectFacts, previewedState } from "./facts";
import { driftUnknownNews, gated, pause, tellRefusal } from "./restraints";

/**
 * What to do about an object, from the facts alone: what is there, and what this process remembers of its last attempt. Which event led
 * here does not matter.
 *
 * An object whose last update succeeded for this generation with this program, and has no drift, needs
 * nothing; so does one whose failure only its author can correct.
 */
export function decide(facts: Facts): Action {
  const action = gated(facts, decideWork(facts));
  const isGated = "gate" in action && action.gate !== "none";
  return tellRefusal(facts, isGated && isPreviewed(facts) ? addFinalizerOr(facts, restAsPreviewed(facts)) : action);
}

/** What is to be done, whatever gate it has to pass. */
function decideWork(facts: Facts): Action {
  const { object, settings, stack, drift, timing } = facts;
  const { metadata, status, hasFinalizer } = object;
  const { blockedMs } = timing;
  if (object.orphaned === "seen" && !object.isTombstone && settings.mode !== "Observe") return { type: "recordOrphan" };
  if (settings.paused && !object.isTombstone) return pause(facts);
  if (metadata.deletionTimestamp) {
    if (!hasFinalizer) return kept(object);
    if (blockedMs > 0) return { type: "wait", requeueAfterMs: blockedMs };
    return finishes(facts) ? { ...update(facts, "Finishing", false), type: "finish" } : destroy(facts);
  }
  if (settings.mode === "Observe") return isPreviewed(facts) ? restAsPreviewed(facts) : { type: "preview" };
  if (isRequested(facts) || hasNewStateDecision(facts)) return update(facts, "Requested", true);
  if (stack.unlisted && status.stack !== undefined) return update(facts, "Retrying", true);

  const rest = () => addFinalizerOr(facts, nothing(facts));
  const attempt = attemptOf(facts);
  // An update would end as the last one did.
  if (attempt !== undefined && isUnchanged(attempt, facts)) {
    if (attempt.outcome === "terminal") return rest();
    if (attempt.outcome === "pending" && blockedMs > 0) {
      return hasFinalizer ? { type: "wait", requeueAfterMs: blockedMs } : rest();
    }
  }

  const drifted = drift.ids.length > 0;
  if (status.stack === undefined) return update(facts, attempt === undefined ? "Creating" : "Retrying", drifted);
  const synced = findCondition(status.conditions, "Synced");
  if (synced?.observedGeneration !== metadata.generation) return update(facts, "Updating", drifted);
  // A conflict is no failure: its repairs have their own back-off. Nor is a pause: the drift that it left is in the facts.
  const isSynced = synced.status === "True" || synced.reason === CONFLICT || isPaused(synced);
  // The status alone does not tell: others can write it.
  const hasFailed = attempt !== undefined && attempt.outcome !== "succeeded";
  if (!isSynced || hasFailed || wasCutOff(facts)) return update(facts, "Retrying", true);
  const ignoresDiffer = !isDeepStrictEqual(status.stack.ignoreFields ?? [], settings.ignoreFields);
  if (ignoresDiffer || stack.changedReads.length > 0) return update(facts, "Updating", drifted);
  if (status.stack.program !== stack.program && (drifted || stack.rolledOut || settings.mode === "Propose")) {
    return update(facts, "ProgramChanged", drifted);
  }
  const isDue = timing.refreshMs !== undefined && timing.refreshMs <= 0;
  if (!drifted) return isDue ? update(facts, "Refreshing", true) : rest();
  const action = repair(facts);
  return action.type === "backOff" ? addFinalizerOr(facts, action) : action;
}

/** While nothing is updated, a lost finalizer is added: without it, a deletion would leave the resources behind. */
function addFinalizerOr({ object: { hasFinalizer, status, metadata } }: Pick<Facts, "object">, action: Action): Action {
  const lacksFinalizer = !hasFinalizer && status.stack !== undefined && metadata.deletionTimestamp === undefined;
  return lacksFinalizer ? { type: "addFinalizer" } : action;
}

/**
 * Whether a kind maintains an object's resources before an action. What a new spec calls for is not fit for those of the old
 * one: they are maintained after the update.
 */
export function maintainsBefore(
  { object, settings: { mode }, stack }: Pick<Facts, "object" | "settings" | "stack">,
  action: Action,
): boolean {
  if (!stack.maintained || object.status.stack === undefined || mode === "Observe" || mode === "Propose") return false;
  return (
    action.type === "nothing" || action.type === "backOff" || (action.type === "update" && action.cause !== "Updating")
  );
}

/** Whether there may be untracked resources of an object: an update of it was begun and did not succeed, as far as is known. */
export function mayHaveUntracked({ object, last: { attempt } }: Pick<Facts, "object" | "last">): boolean {
  const { metadata, hasFinalizer, status } = object;
  if (attempt?.uid === metadata.uid) return attempt.outcome !== "succeeded";
  if (!hasFinalizer) return false;
  const { conditions, observedGeneration, stack } = status;
  return stack === undefined || isUnfinished(conditions) || observedGeneration !== metadata.generation;
}

/** Whether something is of the object as it is now specified. */
function isOfObject(last: Pick<Attempt, "uid" | "generation">, { metadata }: ObjectFacts): boolean {
  return last.uid === metadata.uid && last.generation === metadata.generation;
}

/** The last attempt, if it was of the object as it is now specified. */
function attemptOf({ object, last: { attempt } }: Pick<Facts, "object" | "last">): Attempt | undefined {
  return attempt !== undefined && isOfObject(attempt, object) ? attempt : undefined;
}

/** Whether another process's update did not get as far as to say how it ended. */
function wasCutOff(facts: Pick<Facts, "object" | "last">): boolean {
  return attemptOf(facts) === undefined && isUnfinished(facts.object.status.conditions);
}

/** Whether another preview would end as the last one did. One that failed, and may succeed, is repeated. */
function isPreviewed(facts: Facts): boolean {
  const { preview } = facts.last;
  if (preview === undefined || preview.outcome === "retryable" || isRequested(facts)) return false;
  return isOfObject(preview, facts.object) && isUnchanged(preview, facts) && preview.of === previewedState(facts);
}

function isRequested({ object, settings: { requested } }: Pick<Facts, "object" | "settings">): boolean {
  return requested !== undefined && requested !== object.status.lastHandledReconcile;
}

/** Whether a decision on a lost state is still to be obeyed, or turns out to be about a state that is there. */
function hasNewStateDecision(facts: Pick<Facts, "object" | "settings" | "last">): boolean {
  const { stateDecision } = facts.settings;
  return stateDecision !== undefined && attemptOf(facts)?.stateDecision !== stateDecision;
}

/** Others may have written the status since the last preview, and a pause may be over. */
function restAsPreviewed({ object, drift, last, timing: { previewedForMs } }: Facts): Action {
  const corrected = newsAmong(last.preview?.conditions ?? [], object.status.conditions);
  const requeueAfterMs = Number.isFinite(previewedForMs) ? Math.max(1, previewedForMs) : 0;
  return { type: "nothing", conditions: [...corrected, ...driftUnknownNews(object, drift)], requeueAfterMs };
}

/** Whether the program, the drift and what the program reads are as they were for an attempt or a preview. */
function isUnchanged(
  last: Pick<Attempt, "programDigest" | "drifted">,
  { stack, drift }: Pick<Facts, "stack" | "drift">,
): boolean {
  const isSameProgram = last.programDigest === stack.program && stack.changedReads.length === 0;
  return isSameProgram && last.drifted.join() === drift.ids.join();
}

/**
 * What is alive may have changed, a pause or a conflict may be over, an operator may have ended before it wrote that an
 * update had, and others may have written the status.
 */
function nothing(facts: Omit<Facts, "settings" | "stack">): Action {
  const { object, drift, timing } = facts;
  const { conflictOverMs, refreshMs = Number.POSITIVE_INFINITY } = timing;
  const { conditions } = object.status;
  const reconciling = findCondition(conditions, "Reconciling");
  const synced = findCondition(conditions, "Synced");
  const inConflict = findCondition(conditions, "FieldConflict")?.status === "True";
  const corrected: NewCondition[] = [];
  if (reconciling !== undefined && reconciling.reason !== PROGRESSING) corrected.push(notSo("Reconciling"));
  corrected.push(...newsAmong(attemptOf(facts)?.conditions ?? [], conditions));
  if (synced !== undefined && isPaused(synced)) corrected.push(...SUCCEEDED_CONDITIONS);
  if (inConflict && conflictOverMs <= 0) corrected.push(...conflictOverConditions());
  corrected.push(...driftUnknownNews(object, drift));
  const mayEnd = inConflict && conflictOverMs > 0;
  const waitMs = Math.min(refreshMs, mayEnd ? conflictOverMs : Number.POSITIVE_INFINITY);
  return { type: "nothing", conditions: corrected, requeueAfterMs: Number.isFinite(waitMs) ? Math.max(0, waitMs) : 0 };
}

/** Its resources are deleted or released, if it ever had any; others keep the object. */
function kept({ otherFinalizers, status }: ObjectFacts): Action {
  const conditions = keptConditions(otherFinalizers);
  return { type: "nothing", conditions: newsAmong(conditions, status.conditions), requeueAfterMs: 0 };
}

/** A repair waits while another controller undoes each, and while what it replaces completes as well. */
function repair(facts: Facts): Action {
  const { completed, lacksMore } = facts.drift;
  const { repairMs } = facts.timing;
  const replacementMs = completed.length > 0 ? Math.max(0, facts.timing.replacementMs) : 0;
  const waitMs = Math.max(repairMs, replacementMs);
  if (waitMs <= 0) return { ...update(facts, "Repairing", true), replaced: completed };
  if (repairMs <= 0 && lacksMore) {
    return { ...update(facts, "Repairing", true), postponed: completed, looksAgain: true };
  }
  const conditions = replacementMs > 0 ? backOffConditions(completed) : [];
  return { type: "backOff", conditions, requeueAfterMs: Math.ceil(waitMs) };
}

function update(facts: Facts, cause: Cause, refresh: boolean): UpdateAction {
  const { stack, drift } = facts;
  const untracked = mayHaveUntracked(facts);
  return {
    type: "update",
    gate: "none",
    cause,
    refresh,
    onlyProgram: cause === "ProgramChanged" && drift.ids.length === 0,
    onlyLacking:
      cause === "Repairing" && drift.edited.length + drift.missing.length === 0 && drift.polled === undefined,
    replaced: [],
    postponed: [],
    mayHaveUntracked: untracked,
    looksAgain: stack.maintained || (stack.readsLive && untracked),
    progressReport: progressReportOf(cause),
  };
}

function progressReportOf(cause: Cause): ProgressReport {
  // Before a repair, the status says that all is well. With every other cause, the object or its status shows that it is due.
  if (cause === "Repairing") return "before";
  return ["Creating", "Updating", "Finishing"].includes(cause) ? "late" : "beside";
}

/** Whether an update comes before the destroy. It is tried once where the destroy leads to all that was made, or leaves it. */
export function finishes(facts: Omit<Facts, "timing">): boolean {
  const { object, settings, stack, last } = facts;
  if (settings.mode !== "Apply" || object.isTombstone) return false;
  const isLost = stack.unlisted && object.status.stack !== undefined && takesOverLost(facts);
  if (!isLost && (last.isRecorded || !mayBeUnfinished(object))) return false;
  const attempt = attemptOf(facts);
  if (attempt?.finishes === undefined) return true;
  if (isLost && !stack.adopts) return true;
  return attempt.outcome === "retryable" && !stack.adopts && !settings.releases;
}

/** Whether what an object made is found and destroyed though its state is lost: by its marks, or as a user has decided. */
export function takesOverLost({ object, settings, stack }: Pick<Facts, "object" | "settings" | "stack">): boolean {
  const { mode, releases, stateDecision } = settings;
  if (mode !== "Apply" || releases || stateDecision === "Forget") return false;
  return stack.adopts || (stateDecision === "Adopt" && !object.isTombstone);
}

/** Whether an update of an object that is to be deleted has begun and may have been cut off. */
function mayBeUnfinished({ metadata, status: { conditions, observedGeneration } }: ObjectFacts): boolean {
  // Neither a deletion that waits nor a pause lets an update begin.
  if (isBeingDestroyed(conditions) || findCondition(conditions, "Paused") !== undefined) return false;
  // A deletion makes a new generation; one more since the last update that ended may have been under way.
  const mayBeUnderWay = observedGeneration === undefined || metadata.generation - observedGeneration > 1;
  return mayBeUnderWay || isUnfinished(conditions);
}

function isBeingDestroyed(conditions: Condition[] | undefined): boolean {
  return findCondition(conditions, "Reconciling")?.reason === "Deleting";
}

function destroy(facts: Pick<Facts, "object" | "settings" | "last">): DestroyAction {
  const { object, settings } = facts;
  return {
    type: "destroy",
    gate: "none",
    // What is only observed is not deleted.
    release: settings.releases || settings.mode === "Observe",
    mayHaveUntracked: mayHaveUntracked(facts),
    progressReported: object.isTombstone || isBeingDestroyed(object.status.conditions),
  };
}
