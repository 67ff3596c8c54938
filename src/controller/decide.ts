import { isDeepStrictEqual } from "node:util";
import { findCondition, type NewCondition } from "../../stacks/contract/condition";
import { objectKey, parseObjectId } from "../../stacks/contract/object";
import { isPaused } from "../../stacks/contract/readiness";
import {
  backOffConditions,
  type Cause,
  CONFLICT,
  conflictOverConditions,
  isReported,
  isUnfinished,
  leavingConditions,
  PROGRESSING,
  pausedConditions,
  resumedConditions,
  succeededConditions,
} from "./conditions";
import { type Attempt, comparedState, type Facts } from "./facts";
import type { DestroyPlan, Gate, Plan, ProgressReport, UpdatePlan } from "./plan";

/**
 * What to do about an object, from its present state alone: which event led here does not matter.
 *
 * An object whose last update succeeded for this generation with this program, and has no drift, needs
 * nothing; so does one whose failure only its author can correct.
 */
export function decide(facts: Facts): Plan {
  const plan = decideWork(facts);
  const mayWait = (plan.type === "update" || plan.type === "destroy") && plan.gate !== "none";
  return mayWait && isCompared(facts) ? waiting(facts) : plan;
}

/** What is to be done, whether it waits for an approval or not. */
function decideWork(facts: Facts): Plan {
  const { metadata, status, lastAttempt, requested, finalized, blockedMs } = facts;
  if (facts.paused && !facts.gone) {
    const synced = findCondition(status.conditions, "Synced");
    const paused = pausedConditions(metadata.generation, facts.annotationProblem, pausedWork(facts), synced);
    return { type: "pause", conditions: [...paused, ...driftUnknownNews(facts)] };
  }
  if (metadata.deletionTimestamp) {
    if (!finalized) return leave(facts);
    return blockedMs > 0 ? { type: "wait", requeueAfterMs: blockedMs } : destroy(facts);
  }
  if (facts.mode === "Observe") return isCompared(facts) ? observed(facts) : { type: "compare" };
  if (requested !== undefined && requested !== status.lastHandledReconcile) return update(facts, "Requested", true);

  // Without the finalizer a deletion would leave the resources behind.
  const rest = () => (finalized || status.stack === undefined ? nothing(facts) : ({ type: "finalize" } as const));
  if (isRepetition(facts)) {
    if (lastAttempt?.outcome === "terminal") return rest();
    if (lastAttempt?.outcome === "pending" && blockedMs > 0) {
      return finalized ? { type: "wait", requeueAfterMs: blockedMs } : rest();
    }
  }

  const drifted = facts.drifted.length > 0;
  if (status.stack === undefined) return update(facts, wasAttempted(facts) ? "Retrying" : "Creating", drifted);
  const synced = findCondition(status.conditions, "Synced");
  if (synced?.observedGeneration !== metadata.generation) return update(facts, "Updating", drifted);
  // What others revert is repaired at its own pace, and what a pause held up is known.
  if (
    (synced.status !== "True" && synced.reason !== CONFLICT && !isPaused(synced)) ||
    hasFailed(facts) ||
    wasCutOff(facts)
  )
    return update(facts, "Retrying", true);
  if (!isDeepStrictEqual(status.stack.ignoreFields ?? [], facts.ignoreFields))
    return update(facts, "Updating", drifted);
  if (facts.changedReads.length > 0) return update(facts, "Updating", drifted);
  if (status.stack.program !== facts.program && (drifted || facts.rolledOut || isApprovedInstead(facts))) {
    return update(facts, "ProgramChanged", drifted);
  }
  if (!drifted) return isDue(facts) ? update(facts, "Refreshing", true) : rest();
  const plan = repair(facts);
  return plan.type === "backOff" && !finalized ? { type: "finalize" } : plan;
}

/**
 * Whether a kind maintains an object's resources before a plan. What a new spec calls for is not fit for those of the old
 * one: they are maintained after the update.
 */
export function maintainsBefore({ maintained, status, mode }: Facts, plan: Plan): boolean {
  if (!maintained || status.stack === undefined || mode === "Observe" || mode === "Propose") return false;
  return plan.type === "nothing" || plan.type === "backOff" || (plan.type === "update" && plan.cause !== "Updating");
}

/** Whether there may be orphans of an object: an update of it was begun and did not succeed, as far as is known. */
export function mayHaveOrphans({
  metadata,
  finalized,
  status,
  lastAttempt,
}: Pick<Facts, "metadata" | "finalized" | "status" | "lastAttempt">): boolean {
  if (lastAttempt?.uid === metadata.uid) return lastAttempt.outcome !== "succeeded";
  if (!finalized) return false;
  const { conditions, observedGeneration, stack } = status;
  return stack === undefined || isUnfinished(conditions) || observedGeneration !== metadata.generation;
}

function wasAttempted(facts: Facts): boolean {
  return facts.lastAttempt !== undefined && isOfObject(facts.lastAttempt, facts);
}

/** Whether something is of the object as it is now specified. */
function isOfObject(last: Pick<Attempt, "uid" | "generation">, { metadata }: Facts): boolean {
  return last.uid === metadata.uid && last.generation === metadata.generation;
}

/** Whatever the status says: it can be written by others. */
function hasFailed(facts: Facts): boolean {
  return wasAttempted(facts) && facts.lastAttempt?.outcome !== "succeeded";
}

/** Whether another process's update did not get as far as to say how it ended. */
function wasCutOff(facts: Facts): boolean {
  return !wasAttempted(facts) && isUnfinished(facts.status.conditions);
}

/** Whether a comparison would be the last one again; one that failed, and may succeed, is repeated. */
function isCompared(facts: Facts): boolean {
  const { lastComparison: last, requested, status } = facts;
  return (
    last !== undefined &&
    last.outcome !== "retryable" &&
    isOfObject(last, facts) &&
    isUnchanged(last, facts) &&
    last.of === comparedState(facts) &&
    (requested === undefined || requested === status.lastHandledReconcile)
  );
}

/** Others may have written the status since a comparison, and a pause may be over. */
function observed(facts: Facts): Plan {
  const { conditions } = facts.status;
  const wanted = facts.lastComparison?.conditions ?? [];
  const corrected = wanted.filter((condition) => !isReported(conditions, condition));
  const { comparedForMs } = facts;
  const requeueAfterMs = Number.isFinite(comparedForMs) ? Math.max(1, comparedForMs) : 0;
  return { type: "nothing", conditions: [...corrected, ...driftUnknownNews(facts)], requeueAfterMs };
}

/** While a plan waits for an approval. */
function waiting(facts: Facts): Plan {
  const { finalized, status, metadata } = facts;
  const needsFinalizer = !finalized && status.stack !== undefined && metadata.deletionTimestamp === undefined;
  return needsFinalizer ? { type: "finalize" } : observed(facts);
}

/** Which changes wait for an approval in the object's mode. */
function gateOf({ mode }: Pick<Facts, "mode">): Gate {
  if (mode === "Propose") return "all";
  return mode === "ProposeDestructive" ? "destructive" : "none";
}

/** Whether a new program waits for approvals and not for a rollout: all plans are made at once, to be approved as a group. */
function isApprovedInstead(facts: Facts): boolean {
  return gateOf(facts) === "all";
}

/** Whether an update would be the last one again. */
function isRepetition(facts: Facts): boolean {
  const { lastAttempt } = facts;
  return lastAttempt !== undefined && isOfObject(lastAttempt, facts) && isUnchanged(lastAttempt, facts);
}

/** Whether all that something was made of, besides the object, is as it was. */
function isUnchanged(last: Pick<Attempt, "program" | "drifted">, { program, drifted, changedReads }: Facts): boolean {
  return last.program === program && last.drifted.join() === drifted.join() && changedReads.length === 0;
}

/**
 * What is alive may have changed, a pause or a conflict may be over, an operator may have ended before it wrote that an
 * update had, and others may have written the status.
 */
function nothing(facts: Facts): Plan {
  const { metadata, status, backoff, lastAttempt } = facts;
  const { conditions } = status;
  const { generation, deletionTimestamp } = metadata;
  const corrected: NewCondition[] = [];
  const reconciling = findCondition(conditions, "Reconciling");
  if (!deletionTimestamp && reconciling !== undefined && reconciling.reason !== PROGRESSING) {
    corrected.push(...resumedConditions(generation));
  }
  if (!deletionTimestamp && wasAttempted(facts)) {
    corrected.push(...(lastAttempt?.conditions ?? []).filter((condition) => !isReported(conditions, condition)));
  }
  const synced = findCondition(conditions, "Synced");
  if (!deletionTimestamp && synced !== undefined && isPaused(synced))
    corrected.push(...succeededConditions(generation));
  const inConflict = findCondition(conditions, "FieldConflict")?.status === "True";
  if (inConflict && backoff.settledMs <= 0) corrected.push(...conflictOverConditions(generation));
  corrected.push(...driftUnknownNews(facts));
  const waits = [
    ...(inConflict ? [backoff.settledMs] : []),
    ...(facts.refreshMs === undefined ? [] : [facts.refreshMs]),
  ];
  const requeueAfterMs = waits.length === 0 ? 0 : Math.max(0, Math.min(...waits));
  return { type: "nothing", conditions: corrected, requeueAfterMs };
}

/** Whether a kind wants an object's resources to be compared by now. */
function isDue({ refreshMs }: Facts): boolean {
  return refreshMs !== undefined && refreshMs <= 0;
}

/** What is not done while an object is paused, in words. */
function pausedWork({ metadata, status, drift, comparedDrift }: Facts): string[] {
  if (metadata.deletionTimestamp) return ["The object is to be deleted"];
  if (status.stack === undefined) return ["Nothing has been made yet"];
  const synced = findCondition(status.conditions, "Synced");
  const nameOf = (id: string) => {
    const { kind, ...key } = parseObjectId(id);
    return `${kind} ${objectKey(key)}`;
  };
  return [
    ...(synced?.observedGeneration === metadata.generation ? [] : ["The spec has changed"]),
    ...drift.edited.map((id) => `${nameOf(id)} is not as it was applied`),
    ...drift.missing.map((id) => `${nameOf(id)} is missing`),
    ...(comparedDrift === undefined ? [] : [comparedDrift]),
  ];
}

/** Its resources are deleted or released, if it ever had any; others keep the object. */
function leave(facts: Facts): Plan {
  const conditions = leavingConditions(facts.metadata.generation, facts.otherFinalizers);
  const news = conditions.filter((condition) => !isReported(facts.status.conditions, condition));
  return { type: "nothing", conditions: news, requeueAfterMs: 0 };
}

/** What the last comparison says about drift being unknown, unless the status says the same. */
function driftUnknownNews({ driftUnknown, status }: Facts): NewCondition[] {
  return driftUnknown === undefined || isReported(status.conditions, driftUnknown) ? [] : [driftUnknown];
}

/** A repair waits while another controller undoes each, and while what it replaces completes as well. */
function repair(facts: Facts): Plan {
  const { completed, backoff, metadata } = facts;
  const replacementMs = completed.length > 0 ? Math.max(0, backoff.replacementMs) : 0;
  const waitMs = Math.max(backoff.repairMs, replacementMs);
  if (waitMs <= 0) return { ...update(facts, "Repairing", true), replaced: completed };
  if (backoff.repairMs <= 0 && facts.lacksMore) {
    return { ...update(facts, "Repairing", true), postponed: completed, looksAgain: true };
  }
  const conditions = replacementMs > 0 ? backOffConditions(metadata.generation, completed) : [];
  return { type: "backOff", conditions, requeueAfterMs: Math.ceil(waitMs) };
}

function update(facts: Facts, cause: Cause, refresh: boolean): UpdatePlan {
  const { edited, missing } = facts.drift;
  const orphans = mayHaveOrphans(facts);
  return {
    type: "update",
    gate: gateOf(facts),
    cause,
    refresh,
    onlyProgram: cause === "ProgramChanged" && facts.drifted.length === 0 && !isApprovedInstead(facts),
    onlyLacking: cause === "Repairing" && edited.length + missing.length === 0 && facts.comparedDrift === undefined,
    replaced: [],
    postponed: [],
    mayHaveOrphans: orphans,
    looksAgain: facts.maintained || (facts.readsLive && orphans),
    progressReport: progressReportOf(cause),
  };
}

function progressReportOf(cause: Cause): ProgressReport {
  // The status that is there says that all is well; of every other cause, the object or its status shows until it is over.
  if (cause === "Repairing") return "before";
  return cause === "Creating" || cause === "Updating" ? "late" : "beside";
}

function destroy(facts: Facts): DestroyPlan {
  const { metadata, status } = facts;
  const orphans = mayHaveOrphans(facts);
  const { reason = "" } = findCondition(status.conditions, "Reconciling") ?? {};
  // A deletion makes a new generation; one more since the last update that ended may have been under way.
  const observed = status.observedGeneration;
  const mayBeUnderWay = observed === undefined || metadata.generation - observed > 1;
  const hasRested = reason === "Deleting" || findCondition(status.conditions, "Paused") !== undefined;
  return {
    type: "destroy",
    gate: gateOf(facts),
    // What is only observed is not deleted.
    release: facts.releases || facts.mode === "Observe",
    mayHaveOrphans: orphans,
    finishUpdate:
      facts.mode === "Apply" && !facts.gone && !hasRested && (isUnfinished(status.conditions) || mayBeUnderWay),
    mayBeEmpty: facts.unblocked && !orphans,
    progressReported: facts.gone || reason === "Deleting",
  };
}
