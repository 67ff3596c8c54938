import type { LiveObject } from "../../providers/kubernetes/client";
import { ignoredPaths } from "../../providers/kubernetes/ignored-fields";
import { objectsAmong } from "../../providers/kubernetes/object";
import { IGNORE_FIELDS_ANNOTATION } from "../../stacks/contract/annotations";
import { type Condition, findCondition, type NewCondition } from "../../stacks/contract/condition";
import { statusOf } from "../../stacks/contract/kind";
import { isLooser } from "../../stacks/contract/mode";
import { objectId, type StackRecord, stackName } from "../../stacks/contract/object";
import type { UpResult } from "../automation/engine";
import type { UpdateFailure } from "../automation/failures";
import { Blockers } from "./blockers";
import { describePlanned } from "./compare";
import {
  conflictConditions,
  conflictMessage,
  conflictOverConditions,
  deletingConditions,
  describeAll,
  describeChanges,
  describeFailures,
  failedConditions,
  isReported,
  OBSERVED,
  observedConditions,
  outcomeOf,
  succeededConditions,
} from "./conditions";
import type { Reconcile, Result } from "./context";
import { type Attempt, comparedState } from "./facts";
import { alterationsIn, revertsIn } from "./field-conflict";
import { MAINTAIN_INTERVAL_MS } from "./maintain";
import { COMPARED } from "./observe";
import type { Destroyed, DestroyFailed, Outcome, Updated, UpdateFailed } from "./outcome";
import { outputFields } from "./output-fields";
import type { UpdatePlan } from "./plan";
import { describeApproval } from "./propose";
import { recordProposal } from "./record-proposal";

/** Records what came of a plan: in the status, the Events, the finalizer, and what this process remembers. */
export async function record(reconcile: Reconcile, outcome: Outcome): Promise<Result> {
  recordMode(reconcile);
  switch (outcome.type) {
    case "stale":
      return "retry";
    case "unneeded":
    case "notRolledOut":
      return "done";
    case "finalized":
      return { requeueAfterMs: 0 };
    case "rests":
      return recordRest(reconcile, outcome);
    case "compared":
      return recordComparison(reconcile, outcome);
    case "proposed":
      return recordProposal(reconcile, outcome, handled(reconcile));
    case "waits":
      return recordWait(reconcile, outcome);
    case "updated":
      return recordUpdate(reconcile, outcome);
    case "updateFailed":
      return recordFailedUpdate(reconcile, outcome);
    case "destroyed":
      return recordDestroy(reconcile, outcome);
    case "destroyFailed":
      return recordFailedDestroy(reconcile, outcome);
  }
}

/** Tells of a less strict mode than the status has: protection has ended. */
function recordMode({ context, facts, object }: Reconcile): void {
  const { mode: before = "Apply" } = facts.status;
  if (!isLooser(facts.mode, before) || facts.gone) return;
  context.metrics.loosened();
  context.writer.event(object, "Warning", "ModeLoosened", `the mode was ${before} and is ${facts.mode} now`);
}

/** What is alive may have changed as well. */
async function recordRest(
  { context: { writer }, object, state }: Reconcile,
  { conditions, requeueAfterMs }: Extract<Outcome, { type: "rests" }>,
): Promise<Result> {
  const before = statusOf(object).conditions;
  if (conditions.some(({ type, status }) => type === "FieldConflict" && status === "False")) state.repairs.reset();
  for (const condition of conditions) {
    const event = eventOf(condition, before);
    if (event !== undefined) writer.event(object, "Warning", event.reason, event.note);
  }
  if (object.status !== undefined || conditions.length > 0) await writer.writeStatus(object, state, { conditions });
  return requeueAfterMs > 0 ? { requeueAfterMs } : "done";
}

function eventOf(condition: NewCondition, before: Condition[] | undefined) {
  const { type, status, reason, message } = condition;
  if (type === "DriftUnknown" && status === "True") return { reason: type, note: `${reason}: ${message}` };
  const isNews = reason === "BackOff" && findCondition(before, type)?.reason !== reason;
  return isNews ? { reason, note: message } : undefined;
}

/** No event shows that what is outside of the cluster has changed, and only what is as specified is polled. */
const COMPARE_AGAIN_MS = 60_000;

async function recordComparison(
  reconcile: Reconcile,
  { resources, failures }: Extract<Outcome, { type: "compared" }>,
): Promise<Result> {
  const { context, facts, object, state, logger } = reconcile;
  const { generation } = facts.metadata;
  const ended = outcomeOf(failures);
  const outcome = failures.length === 0 ? "compared" : ended === "terminal" ? "terminal" : "retryable";
  const conditions =
    failures.length > 0
      ? failedConditions(generation, failures)
      : observedConditions(generation, resources.map(describePlanned));
  state.comparedDrift = undefined;
  const drifted = facts.drifted.filter((id) => id !== COMPARED);
  const attempt = attemptOf(reconcile, { outcome: "succeeded", drifted, conditions });
  const { external, refreshEvery } = context.kind.capabilities;
  const rowsAgainMs = external !== undefined && resources.length > 0 ? COMPARE_AGAIN_MS : Number.POSITIVE_INFINITY;
  const againMs = Math.min(rowsAgainMs, (refreshEvery ?? Number.POSITIVE_INFINITY) * 1000);
  const untilMs = performance.now() + againMs;
  state.lastComparison = { ...attempt, outcome, of: comparedState(facts), untilMs };
  logger.info({ changes: resources.length, failures }, "compared, as the object is only observed");
  await context.plans?.remove(context.kind, object); // of a mode that was less strict
  const news = conditions.find((condition) => condition.status !== "False" || condition.reason === OBSERVED);
  if (news?.reason === OBSERVED && !isReported(facts.status.conditions, news)) {
    context.writer.event(object, "Normal", OBSERVED, news.message);
  }
  await context.writer.writeStatus(object, state, { ...handled(reconcile), conditions });
  if (outcome === "retryable") return retry(failures.find(({ errorClass }) => errorClass !== "pending"));
  return againMs < Number.POSITIVE_INFINITY ? { requeueAfterMs: againMs } : "done";
}

async function recordWait(
  reconcile: Reconcile,
  { failures, requeueAfterMs }: Extract<Outcome, { type: "waits" }>,
): Promise<Result> {
  const { object } = reconcile;
  const { generation = 0, deletionTimestamp } = object.metadata;
  const conditions = (deletionTimestamp ? deletingConditions : failedConditions)(generation, failures);
  await writeConditions(reconcile, object, conditions);
  return { requeueAfterMs };
}

async function recordUpdate(
  reconcile: Reconcile,
  { plan, object, result, program, approval }: Updated,
): Promise<Result> {
  const { context, facts, state, logger } = reconcile;
  const { writer } = context;
  state.comparedDrift = undefined;
  state.blockers = undefined;
  state.expectations.updated(result);
  program.retainClaims();
  const stack = { ...stackRecordOf(reconcile, result), ...(approval && { approval }) };
  const { repaired, undone } = countReverts(reconcile, plan, result);
  const conflict = undone === undefined ? continuedConflict(reconcile, plan) : conflictMessage(undone);
  const conditions = updatedConditions(reconcile, conflict);
  state.lastAttempt = attemptOf(reconcile, {
    outcome: "succeeded",
    drifted: facts.drifted,
    conditions: conflict === undefined ? conditions : [], // a conflict ends without another attempt
  });
  await context.plans?.remove(context.kind, object); // before the status says that nothing waits
  const outputs = outputFields(context.kind, object, result.resources);
  await writer.writeStatus(object, state, { ...handled(reconcile), conditions, stack, ...(outputs && { outputs }) });
  const { resourceChanges, startTime, endTime } = result.summary;
  logger.info(
    { cause: plan.cause, changes: resourceChanges, durationMs: endTime.getTime() - startTime.getTime(), approval },
    "updated",
  );
  const changes = describeChanges(resourceChanges);
  const reason = plan.cause === "Repairing" || plan.cause === "Refreshing" ? "Repaired" : "Updated";
  if (changes !== "") writer.event(object, "Normal", reason, repaired === "" ? changes : `${changes}: ${repaired}`);
  if (approval !== undefined) writer.event(object, "Normal", "Approved", describeApproval(approval));
  if (undone !== undefined) {
    writer.event(object, "Warning", "FieldConflict", undone);
    logger.warn({ conflict: undone }, "another controller undoes every repair, slowing down");
  }
  const unmatched = unmatchedFields(reconcile, result);
  if (unmatched !== undefined) writer.event(object, "Warning", "InvalidAnnotation", unmatched);
  const { refreshEvery } = context.kind.capabilities;
  const now = performance.now();
  if (refreshEvery !== undefined && plan.refresh) state.refreshes.done(refreshEvery, now);
  if (plan.looksAgain) return { requeueAfterMs: MAINTAIN_INTERVAL_MS };
  if (conflict === undefined) {
    return refreshEvery === undefined ? "done" : { requeueAfterMs: state.refreshes.dueMs(refreshEvery, now) };
  }
  const { notBefore, settledAt } = state.repairs;
  return { requeueAfterMs: Math.max(0, (undone === undefined ? settledAt : notBefore) - performance.now()) };
}

/** What names nothing that the object made: a misspelt name would leave nothing to others. */
function unmatchedFields({ facts: { ignoreFields } }: Reconcile, { resources }: UpResult): string | undefined {
  const made = objectsAmong(resources).map(({ manifest }) => manifest);
  const unmatched = ignoreFields.filter(
    (field) => !made.some((manifest) => ignoredPaths([field], manifest).length > 0),
  );
  if (unmatched.length === 0) return undefined;
  const names = made.map(({ kind, metadata }) => `${kind}/${metadata.name}`);
  return `annotation ${IGNORE_FIELDS_ANNOTATION}: nothing is left to others by ${unmatched.join(", ")}; the object made ${describeAll(names)}`;
}

/** The conflict that the status tells of: an update is no reason to take it for over, unless a user has asked for it. */
function continuedConflict({ facts: { status } }: Reconcile, { cause }: UpdatePlan): string | undefined {
  const known = findCondition(status.conditions, "FieldConflict");
  return known?.status === "True" && cause !== "Updating" && cause !== "Requested" ? known.message : undefined;
}

function updatedConditions({ facts, state }: Reconcile, conflict: string | undefined): NewCondition[] {
  const { generation } = facts.metadata;
  if (conflict !== undefined) return conflictConditions(generation, conflict);
  if (findCondition(facts.status.conditions, "FieldConflict")?.status !== "True")
    return succeededConditions(generation);
  state.repairs.reset();
  return conflictOverConditions(generation);
}

/** Counts what was repaired. @returns what that was, and what of it others undo each time, in words */
function countReverts(
  { context: { kind }, facts, state }: Reconcile,
  { cause }: UpdatePlan,
  { resources }: UpResult,
): { repaired: string; undone: string | undefined } {
  // For programs that depend on what is alive, things come and go.
  const missing = cause === "Repairing" && kind.capabilities.liveState === undefined ? facts.drift.missing : [];
  const reverts = revertsIn(resources, missing, facts.comparedDrift);
  const altered = alterationsIn(resources);
  const conflicts = state.repairs.count(
    cause === "Repairing" ? reverts.map(({ key }) => key) : [],
    altered.map(({ key }) => key),
    performance.now(),
  );
  const undone = [...altered, ...reverts].filter(({ key }) => conflicts.has(key)).map(({ conflict }) => conflict);
  return {
    repaired: describeAll(reverts.flatMap(({ repaired }) => repaired ?? [])),
    undone: undone.length === 0 ? undefined : describeAll([...new Set(undone)]),
  };
}

async function recordFailedUpdate(reconcile: Reconcile, { object, failures, partial }: UpdateFailed): Promise<Result> {
  const { context, item, facts, state, logger } = reconcile;
  const { claims, writer } = context;
  const refused = failures.filter(({ errorClass }) => errorClass !== "pending");
  const outcome = outcomeOf(failures);
  const blockers = outcome === "pending" ? new Blockers(context, reconcile.object, failures) : undefined;
  const drifted = facts.drifted.filter((id) => !blockers?.accountsFor(id));
  state.blockers = blockers;
  const conditions = failedConditions(facts.metadata.generation, failures);
  state.lastAttempt = attemptOf(reconcile, { outcome, drifted, conditions });
  const stack = partial && partialRecordOf(reconcile, partial.result);
  if (stack !== undefined) partial?.program.retainClaims();
  for (const { reason, object: about } of refused) {
    if (reason === "Conflict" && about) claims.await(objectId(about), item);
  }
  if (refused.length > 0) {
    logger.warn(
      { failures },
      outcome === "terminal" ? "update failed, waits for the object to change" : "update failed",
    );
    writer.event(object, "Warning", refused[0]?.reason ?? "UpdateFailed", describeFailures(refused));
  } else {
    logger.info({ failures }, "update waits for something else to end");
  }
  await writer.writeStatus(object, state, { ...handled(reconcile), conditions, ...(stack && { stack }) });
  if (blockers !== undefined) return { requeueAfterMs: await blockers.remainingMs(context, reconcile.object) };
  if (outcome === "terminal") return "done";
  return retry(refused[0]);
}

async function recordDestroy(
  reconcile: Reconcile,
  { plan, object, changes, deletedBefore, approval }: Destroyed,
): Promise<Result> {
  const { kind, plans, writer, claims } = reconcile.context;
  reconcile.logger.info({ changes, release: plan.release, approval }, "destroyed");
  if (approval !== undefined) writer.event(object, "Normal", "Approved", describeApproval(approval));
  if (plan.release) {
    writer.event(object, "Normal", "Orphaned", "its resources stay, unmanaged");
  } else {
    const deleted = deletedBefore + (changes.delete ?? 0);
    const all = { ...changes, ...(deleted > 0 && { delete: deleted }) };
    writer.event(object, "Normal", "Deleted", describeChanges(all) || "nothing was left to delete");
  }
  claims.retain(object.metadata.uid, []);
  await plans?.remove(kind, object);
  if (!reconcile.facts.gone) await writer.removeFinalizer(object, reconcile.state.writes);
  return "done";
}

async function recordFailedDestroy(
  reconcile: Reconcile,
  { object, failures, deleted }: DestroyFailed,
): Promise<Result> {
  const { context, state, facts, logger } = reconcile;
  const { writer } = context;
  const conditions = deletingConditions(facts.metadata.generation, failures);
  const isPending = failures.every(({ errorClass }) => errorClass === "pending");
  state.blockers = isPending ? new Blockers(context, reconcile.object, failures, deleted) : undefined;
  if (state.blockers !== undefined) {
    logger.info({ failures }, "destroy waits for something else to end");
    await writeConditions(reconcile, object, conditions);
    return { requeueAfterMs: await state.blockers.remainingMs(context, reconcile.object) };
  }
  logger.warn({ failures }, facts.gone ? "destroy failed" : "destroy failed, the object stays");
  writer.event(object, "Warning", "DeletionFailed", describeFailures(failures));
  await writeConditions(reconcile, object, conditions);
  return retry(failures.find(({ errorClass }) => errorClass !== "pending"));
}

/** Writes them unless the object is gone. */
async function writeConditions(
  { context: { writer }, facts, state }: Reconcile,
  object: LiveObject,
  conditions: NewCondition[],
): Promise<void> {
  if (!facts.gone) await writer.writeStatus(object, state, { conditions });
}

/** What the operator itself lacks, which all objects meet alike. */
const OWN_DEPENDENCIES = ["NoEngine", "SystemError", "Unreadable"];

function retry(failure: UpdateFailure | undefined): Result {
  if (failure?.dependency !== undefined) return { dependency: failure.dependency };
  return failure !== undefined && OWN_DEPENDENCIES.includes(failure.reason) ? { dependency: failure.reason } : "retry";
}

/** The generation and the request that an update was for. */
function handled({ facts: { metadata, requested } }: Reconcile) {
  return {
    observedGeneration: metadata.generation,
    ...(requested !== undefined && { lastHandledReconcile: requested }),
  };
}

function attemptOf(
  { context: { program }, facts: { metadata } }: Reconcile,
  ended: Pick<Attempt, "outcome" | "drifted" | "conditions">,
): Attempt {
  const { uid, generation } = metadata;
  return { uid, generation, program, ...ended };
}

function stackRecordOf({ context, facts, item, state }: Reconcile, { resources }: UpResult): StackRecord {
  const { kind, program, cache } = context;
  const { metadata, references = [] } = state.reads ?? {};
  const watched = objectsAmong(resources)
    .map(({ manifest, fields, owner }) => {
      const ignored = ignoredPaths(owner?.ignoreFields, manifest);
      return { id: objectId(manifest), fields, ...(ignored.length > 0 && { ignored }) };
    })
    .filter(({ id }) => cache.view(id) !== undefined)
    .sort((a, b) => (a.id < b.id ? -1 : 1));
  return {
    name: stackName(kind, item.key),
    program,
    ...(facts.ignoreFields.length > 0 && { ignoreFields: [...facts.ignoreFields] }),
    ...(metadata !== undefined && { metadata }),
    ...(references.length > 0 && { references: [...references] }),
    ...(watched.length > 0 && { resources: watched }),
  };
}

/**
 * What is in an object's stack after an update that did all but what failed: what it made is watched for drift as well. Not
 * known before the first success.
 */
function partialRecordOf(reconcile: Reconcile, result: UpResult): StackRecord | undefined {
  const before = reconcile.facts.status.stack;
  if (!result.restDone || before === undefined) return undefined;
  reconcile.state.expectations.updated(result);
  const { resources: done = [] } = stackRecordOf(reconcile, result);
  const deleted = objectsAmong(result.deleted).map(({ manifest }) => objectId(manifest));
  const settled = new Set([...done.map(({ id }) => id), ...deleted]);
  const left = (before.resources ?? []).filter(({ id }) => !settled.has(id));
  return { ...before, resources: [...done, ...left].sort((a, b) => (a.id < b.id ? -1 : 1)) };
}
