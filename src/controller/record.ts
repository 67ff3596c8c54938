import { type Condition, findCondition, type NewCondition } from "../../stacks/contract/condition";
import { statusOf } from "../../stacks/contract/kind";
import { deletingConditions, failedConditions } from "./conditions";
import type { Reconcile, Result, Step } from "./context";
import { describeResult } from "./describe";
import type { Outcome } from "./outcome";
import { recordDestroy, recordFailedDestroy, recordFailedFinish, recordFinish } from "./record-destroy";
import { recordPreview, recordProposal } from "./record-plan";
import { recordFailedUpdate, recordProgram, recordUpdate } from "./record-update";
import { report } from "./report";

/** Records what came of an action: in the status, the Events, the finalizer, and what this process remembers. */
export async function record(reconcile: Reconcile, outcome: Outcome): Promise<Result> {
  switch (outcome.type) {
    case "stale":
      return "retry";
    case "interrupted":
      tellInterrupted(reconcile, outcome);
      return "retry";
    case "left":
      return "done";
    case "sameDeclarations":
      return recordProgram(reconcile, outcome);
    case "prepared":
      return { requeueAfterMs: 0 };
    case "rests":
      return recordRest(reconcile, outcome);
    case "previewed":
      return recordPreview(reconcile, outcome);
    case "proposed":
      return recordProposal(reconcile, outcome);
    case "waits":
      return recordWait(reconcile, outcome);
    case "updated":
      return (outcome.action.type === "finish" ? recordFinish : recordUpdate)(reconcile, outcome);
    case "updateFailed":
      return (outcome.action.type === "finish" ? recordFailedFinish : recordFailedUpdate)(reconcile, outcome);
    case "destroyed":
      return recordDestroy(reconcile, outcome);
    case "destroyFailed":
      return recordFailedDestroy(reconcile, outcome);
  }
}

/**
 * Live resources may have changed as well: the kind's own status fields are written again. The plan of an object that is synced is one
 * that an operator has applied, and not removed before it ended.
 */
async function recordRest(
  step: Step<"object" | "facts" | "state", "client" | "kind" | "plans" | "writer">,
  { conditions, requeueAfterMs }: Extract<Outcome, { type: "rests" }>,
): Promise<Result> {
  const { context, facts, object, state } = step;
  const before = statusOf(object).conditions;
  if (conditions.some(({ type, status }) => type === "FieldConflict" && status === "False")) state.repairs.reset();
  for (const condition of conditions) {
    const event = eventOf(condition, before);
    if (event !== undefined) context.writer.event(object, "Warning", event.reason, event.note);
  }
  if (object.status !== undefined || conditions.length > 0) {
    const reported = await report(step, object, { conditions });
    const isSynced = findCondition(statusOf(reported).conditions, "Synced")?.status === "True";
    if (isSynced && !facts.settings.paused) await context.plans?.remove(context, object);
  }
  return requeueAfterMs > 0 ? { requeueAfterMs } : "done";
}

function eventOf(condition: NewCondition, before: Condition[] | undefined) {
  const { type, status, reason, message } = condition;
  if (type === "DriftUnknown" && status === "True") return { reason: type, note: `${reason}: ${message}` };
  const isNews = reason === "BackOff" && findCondition(before, type)?.reason !== reason;
  return isNews ? { reason, note: message } : undefined;
}

async function recordWait(
  step: Step<"object" | "facts" | "state", "writer">,
  { failures, requeueAfterMs }: Extract<Outcome, { type: "waits" }>,
): Promise<Result> {
  const { object } = step;
  const isDeletion = object.metadata.deletionTimestamp !== undefined;
  const conditions = (isDeletion ? deletingConditions : failedConditions)(failures);
  await report(step, object, { conditions });
  return { requeueAfterMs };
}

/** What it has changed, which the next one will find done. */
function tellInterrupted(
  { context }: Step<never, "writer">,
  { object, result }: Extract<Outcome, { type: "interrupted" }>,
) {
  const changes = describeResult(result);
  if (changes) context.writer.event(object, "Normal", "Interrupted", changes);
}
