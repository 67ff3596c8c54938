import type { ObjectType } from "../../providers/kubernetes/client";
import { ignoredPaths } from "../../providers/kubernetes/ignored-fields";
import { objectsAmong } from "../../providers/kubernetes/object";
import { IGNORE_FIELDS_ANNOTATION } from "../../stacks/contract/annotations";
import { findCondition, type NewCondition } from "../../stacks/contract/condition";
import { objectId, type StackRecord, stackName } from "../../stacks/contract/object";
import type { UpResult } from "../automation/engine";
import type { UpdateAction } from "./action";
import { Blockers } from "./blockers";
import {
  conflictConditions,
  conflictMessage,
  conflictOverConditions,
  failedConditions,
  SUCCEEDED_CONDITIONS,
} from "./conditions";
import type { Result, Step } from "./context";
import { describeAll, describeFailures, describeResult, outcomeOf } from "./describe";
import { reportPass } from "./gate";
import { MAINTAIN_INTERVAL_MS } from "./maintain";
import { explainDecision } from "./missing-state";
import type { Outcome, Updated, UpdateFailed } from "./outcome";
import { outputFields } from "./output-fields";
import { alterationsIn, type Revert, revertsIn } from "./repairs";
import { handled, remembered, report, retry } from "./report";

type RecordStep = Step<"item" | "facts" | "state", "kind">;
type UpdateStep = RecordStep & Step<"logger", "kind" | "client" | "plans" | "writer">;

/** Records an update that succeeded. */
export async function recordUpdate(
  step: UpdateStep,
  { action, object: applied, result, program, pass }: Updated,
): Promise<Result> {
  const { context, facts, state, logger } = step;
  const { writer } = context;
  const object = await writer.removeDecision(applied, state.writes);
  state.polledDrift = undefined;
  state.blockers = undefined;
  state.expectations.updated(result);
  program.retainClaims();
  const stack = {
    ...stackRecordOf(step, result),
    ...(result.declarations !== undefined && { declarations: result.declarations }),
    ...(pass.approval && { approval: pass.approval }),
  };
  const { repaired, undone } = countReverts(step, action, result);
  const conflict = undone === undefined ? continuedConflict(step, action) : conflictMessage(undone);
  const conditions = updatedConditions(step, conflict);
  state.lastAttempt = remembered(step, {
    outcome: "succeeded",
    drifted: facts.drift.ids,
    conditions: conflict === undefined ? conditions : [], // a conflict ends without another attempt
  });
  const outputs = await outputFields(context.kind, object, result.resources);
  await report(step, object, { ...handled(step), conditions, stack, ...(outputs && { outputs }) });
  await context.plans?.remove(context, object); // until the status has the approval, a crash needs the plan to tell of it
  const { resourceChanges, startTime, endTime } = result.summary;
  const durationMs = endTime.getTime() - startTime.getTime();
  logger.info({ cause: action.cause, changes: resourceChanges, durationMs, approval: pass.approval }, "updated");
  const changes = describeResult(result);
  const reason = action.cause === "Repairing" || action.cause === "Refreshing" ? "Repaired" : "Updated";
  if (changes !== "") writer.event(object, "Normal", reason, repaired === "" ? changes : `${changes}: ${repaired}`);
  reportPass(step, object, pass);
  if (undone !== undefined) {
    writer.event(object, "Warning", "FieldConflict", undone);
    logger.warn({ conflict: undone }, "another controller undoes every repair, slowing down");
  }
  const unmatched = unmatchedFields(step, result);
  if (unmatched !== undefined) writer.event(object, "Warning", "InvalidAnnotation", unmatched);
  const { refreshEvery } = context.kind.capabilities;
  const now = performance.now();
  if (action.refresh) state.refreshes.done(refreshEvery, now);
  if (action.looksAgain) return { requeueAfterMs: MAINTAIN_INTERVAL_MS };
  if (conflict === undefined) {
    const againMs = state.refreshes.dueMs(refreshEvery, now);
    return againMs === undefined ? "done" : { requeueAfterMs: Math.max(0, againMs) };
  }
  const { notBefore, conflictOverAt } = state.repairs;
  return { requeueAfterMs: Math.max(0, (undone === undefined ? conflictOverAt : notBefore) - performance.now()) };
}

/** Records that a new version of the program declares what was applied. */
export async function recordProgram(
  step: UpdateStep,
  { object, former }: Extract<Outcome, { type: "sameDeclarations" }>,
): Promise<Result> {
  const { context, facts, state, logger } = step;
  const { metadata: _, references: __, ...before } = former;
  const stack = { ...before, program: facts.stack.program, ...state.reads };
  const conditions = SUCCEEDED_CONDITIONS;
  state.lastAttempt = remembered(step, { outcome: "succeeded", drifted: facts.drift.ids, conditions });
  await report(step, object, { ...handled(step), conditions, stack });
  await context.plans?.remove(context, object);
  logger.info({ program: facts.stack.program }, "the new program declares what was applied");
  return "done";
}

/** What names nothing that the object made: a misspelt name would leave nothing to others. */
function unmatchedFields({ facts }: Step<"facts">, { resources }: UpResult): string | undefined {
  const { ignoreFields } = facts.settings;
  const made = objectsAmong(resources).map(({ manifest }) => manifest);
  const isMatched = (field: string) => made.some((manifest) => ignoredPaths([field], manifest).length > 0);
  const unmatched = ignoreFields.filter((field) => !isMatched(field));
  if (unmatched.length === 0) return undefined;
  const names = made.map(({ kind, metadata }) => `${kind}/${metadata.name}`);
  return `annotation ${IGNORE_FIELDS_ANNOTATION}: nothing is left to others by ${unmatched.join(", ")}; the object made ${describeAll(names)}`;
}

/** The conflict that the status tells of: an update is no reason to take it for over, unless a user has asked for it. */
function continuedConflict({ facts }: Step<"facts">, { cause }: UpdateAction): string | undefined {
  const known = findCondition(facts.object.status.conditions, "FieldConflict");
  return known?.status === "True" && cause !== "Updating" && cause !== "Requested" ? known.message : undefined;
}

function updatedConditions(
  { facts, state }: Step<"facts" | "state">,
  conflict: string | undefined,
): readonly NewCondition[] {
  if (conflict !== undefined) return conflictConditions(conflict);
  if (findCondition(facts.object.status.conditions, "FieldConflict")?.status !== "True") return SUCCEEDED_CONDITIONS;
  state.repairs.reset();
  return conflictOverConditions();
}

/** Counts what was repaired. @returns what that was, and what of it others undo each time, in words */
function countReverts(
  { context: { kind }, facts, state }: Step<"facts" | "state", "kind">,
  { cause }: UpdateAction,
  { resources }: UpResult,
): { repaired: string; undone: string | undefined } {
  // For programs that depend on what is alive, things come and go.
  const missing = cause === "Repairing" && kind.capabilities.liveState === undefined ? facts.drift.missing : [];
  const reverts = revertsIn(resources, missing, facts.drift.polled);
  const altered = alterationsIn(resources);
  const keysOf = (reverts: readonly Revert[]) => reverts.map(({ key }) => key);
  const repaired = cause === "Repairing" ? keysOf(reverts) : [];
  const isReported = findCondition(facts.object.status.conditions, "FieldConflict")?.status === "True";
  const conflicts = state.repairs.repaired(repaired, keysOf(altered), performance.now(), isReported);
  const undone = [...altered, ...reverts].filter(({ key }) => conflicts.has(key)).map(({ conflict }) => conflict);
  return {
    repaired: describeAll(reverts.flatMap(({ repaired }) => repaired ?? [])),
    undone: undone.length === 0 ? undefined : describeAll([...new Set(undone)]),
  };
}

/** Records an update that failed, or waits. */
export async function recordFailedUpdate(
  step: UpdateStep & Step<"object", "claims" | "cache">,
  { object, failures: found, partial }: UpdateFailed,
): Promise<Result> {
  const { context, item, facts, state, logger } = step;
  const { claims, writer } = context;
  const failures = explainDecision(found, facts.settings.stateDecision, "update");
  const refused = failures.filter(({ errorClass }) => errorClass !== "pending");
  const outcome = outcomeOf(failures);
  const blockers = outcome === "pending" ? new Blockers(context, step.object, failures) : undefined;
  const drifted = facts.drift.ids.filter((id) => !blockers?.accountsFor(id));
  state.blockers = blockers;
  const conditions = failedConditions(failures);
  state.lastAttempt = remembered(step, { outcome, drifted, conditions });
  const stack = partial && partialRecordOf(step, partial.result);
  if (stack !== undefined) partial?.program.retainClaims();
  const changes = partial && describeResult(partial.result);
  if (changes) writer.event(object, "Normal", "Updated", changes);
  for (const { reason, object: about } of refused) {
    if (reason === "Conflict" && about) claims.waitFor(objectId(about), item);
  }
  if (refused.length > 0) {
    const isFinal = outcome === "terminal";
    logger.warn({ failures }, isFinal ? "update failed, waits for the object to change" : "update failed");
    writer.event(object, "Warning", refused[0]?.reason ?? "UpdateFailed", describeFailures(refused));
  } else {
    logger.info({ failures }, "update waits for something else to end");
  }
  await report(step, object, { ...handled(step), conditions, ...(stack && { stack }) });
  if (blockers !== undefined) return { requeueAfterMs: (await blockers.look(context, step.object)).remainingMs };
  return outcome === "terminal" ? "done" : retry(failures);
}

function stackRecordOf({ context, facts, item, state }: RecordStep, { resources }: UpResult): StackRecord {
  const { kind } = context;
  const { ignoreFields } = facts.settings;
  const isOwned = ({ apiVersion, kind: type }: ObjectType) =>
    kind.owns.some((owned) => owned.apiVersion === apiVersion && owned.kind === type);
  const watched = objectsAmong(resources)
    .filter(({ manifest }) => isOwned(manifest))
    .map(({ manifest, fields, owner }) => {
      const ignored = ignoredPaths(owner?.ignoreFields, manifest);
      return { id: objectId(manifest), fields, ...(ignored.length > 0 && { ignored }) };
    })
    .sort(byId);
  return {
    name: stackName(kind, item.key),
    program: facts.stack.program,
    ...(ignoreFields.length > 0 && { ignoreFields: [...ignoreFields] }),
    ...state.reads,
    ...(watched.length > 0 && { resources: watched }),
  };
}

/**
 * What is in an object's stack after an update that did all but what failed: what it made is watched for drift as well. Not
 * known before the first success.
 */
function partialRecordOf(step: RecordStep, result: UpResult): StackRecord | undefined {
  const before = step.facts.object.status.stack;
  if (!result.restDone || before === undefined) return undefined;
  step.state.expectations.updated(result);
  const { resources: done = [] } = stackRecordOf(step, result);
  const deleted = objectsAmong(result.deleted).map(({ manifest }) => objectId(manifest));
  const changed = new Set([...done.map(({ id }) => id), ...deleted]);
  const left = (before.resources ?? []).filter(({ id }) => !changed.has(id));
  return { ...before, resources: [...done, ...left].sort(byId) };
}

function byId(a: { id: string }, b: { id: string }): number {
  return a.id < b.id ? -1 : 1;
}
