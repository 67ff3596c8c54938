import { ENDINGS } from "../../providers/reasons";
import { stackName } from "../../stacks/contract/object";
import type { UpdateFailure } from "../automation/event-log";
import { isKubernetesObject } from "../automation/urn";
import { Blockers } from "./blockers";
import { deletingConditions, finishingConditions } from "./conditions";
import type { Result, Step } from "./context";
import { finishes, takesOverLost } from "./decide";
import { describeChanges, describeFailures } from "./describe";
import { reportPass } from "./gate";
import { explainDecision, isStateMissing, STATE_MISSING } from "./missing-state";
import type { ObjectState } from "./object-state";
import type { Destroyed, DestroyFailed, Updated, UpdateFailed } from "./outcome";
import { remembered, report, retry } from "./report";

/** Records that an update before the destroy succeeded: the next reconcile destroys what it has. */
export async function recordFinish(
  step: Step<"facts" | "state" | "logger", "writer">,
  { object, result }: Updated,
): Promise<Result> {
  const { context, facts, state, logger } = step;
  await context.writer.removeDecision(object, state.writes);
  state.expectations.updated(result);
  const attempt = { finishes: true, outcome: "succeeded", drifted: facts.drift.ids, conditions: [] } as const;
  state.lastAttempt = remembered(step, attempt);
  logger.info({ changes: result.summary.resourceChanges }, "finished the last update before the destroy");
  return { requeueAfterMs: 0 };
}

/** Records that it failed. What may pass is told of and tried again; with any other failure, the next reconcile destroys. */
export async function recordFailedFinish(
  step: Step<"facts" | "state" | "logger", "writer">,
  { object, failures: found }: UpdateFailed,
): Promise<Result> {
  const { context, facts, state, logger } = step;
  const failures = explainDecision(found, facts.settings.stateDecision, "update");
  const outcome = failures.some(mayPass) ? "retryable" : "terminal";
  const attempt = remembered(step, { finishes: true, outcome, drifted: facts.drift.ids, conditions: [] } as const);
  state.lastAttempt = attempt;
  logger.warn({ failures }, "failed to finish the last update before the destroy");
  if (!finishes({ ...facts, last: { ...facts.last, attempt } })) return { requeueAfterMs: 0 };
  context.writer.event(object, "Warning", "DeletionFailed", describeFailures(failures));
  await report(step, object, { conditions: finishingConditions(failures) });
  return retry(failures);
}

/** Of plugins, which may refuse something for good, and of programs, which may never end. */
const LASTING: readonly string[] = ["UpdateFailed", "Timeout", ...ENDINGS];

/** Whether a failure may pass and hides what was made until then: no mark leads to it. */
function mayPass({ errorClass, reason, urn }: UpdateFailure): boolean {
  return errorClass === "retryable" && !LASTING.includes(reason) && (urn === undefined || !isKubernetesObject(urn));
}

export async function recordDestroy(
  step: Step<
    "item" | "facts" | "state" | "logger",
    "kind" | "client" | "plans" | "writer" | "claims" | "forgetDestroyed"
  >,
  { action, object, result, deleted, pass }: Destroyed,
): Promise<Result> {
  const { kind, plans, writer, claims } = step.context;
  const { resourceChanges: changes } = result.summary;
  step.logger.info({ changes, release: action.release, approval: pass.approval }, "destroyed");
  reportPass(step, object, pass);
  if (action.release) {
    writer.event(object, "Normal", "Orphaned", "its resources stay, unmanaged");
  } else {
    const all = { ...changes, ...(deleted.length > 0 && { delete: deleted.length }) };
    writer.event(object, "Normal", "Deleted", describeChanges(all, deleted) || "nothing was left to delete");
  }
  claims.retain(object.metadata.uid, []);
  await plans?.remove(step.context, object);
  noteFinalizerRemoval(step.state, object.metadata.uid);
  if (!step.facts.object.isTombstone) await writer.removeFinalizer(object, step.state.writes);
  step.context.forgetDestroyed(stackName(kind, step.item.key));
  return "done";
}

/** Of several tries, the first is kept: the object may end by any of them. */
function noteFinalizerRemoval(state: ObjectState, uid: string): void {
  if (state.finalizerRemoval?.uid !== uid) state.finalizerRemoval = { uid, since: performance.now() };
}

export async function recordFailedDestroy(
  step: Step<"object" | "facts" | "state" | "logger", "client" | "cache" | "writer">,
  { object, failures: found, deleted }: DestroyFailed,
): Promise<Result> {
  const { context, state, facts, logger } = step;
  const failures = explainDecision(found, facts.settings.stateDecision, "deletion");
  const { writer } = context;
  const isMissing = isStateMissing({ failures });
  if (isMissing) state.stackUnlisted = true;
  if (isMissing && takesOverLost(facts)) return { requeueAfterMs: 0 };
  const conditions = deletingConditions(failures);
  const isPending = failures.every(({ errorClass }) => errorClass === "pending");
  state.blockers = isPending ? new Blockers(context, step.object, failures, deleted) : undefined;
  if (state.blockers !== undefined) {
    logger.info({ failures }, "destroy waits for something else to end");
    await report(step, object, { conditions });
    return { requeueAfterMs: (await state.blockers.look(context, step.object)).remainingMs };
  }
  logger.warn({ failures }, facts.object.isTombstone ? "destroy failed" : "destroy failed, the object stays");
  writer.event(object, "Warning", isMissing ? STATE_MISSING : "DeletionFailed", describeFailures(failures));
  await report(step, object, { conditions });
  return retry(failures);
}
