import { type Condition, findCondition, type NewCondition } from "../../stacks/contract/condition";
import { statusOf } from "../../stacks/contract/kind";
import { handled, remembered, retry } from "./attempt";
import { deletingConditions, failedConditions, isReported, OBSERVED, observedConditions } from "./conditions";
import type { Reconcile, Result } from "./context";
import { describePlanned, outcomeOf } from "./describe";
import { comparedState } from "./facts";
import { POLLED_DRIFT } from "./observe";
import type { Outcome } from "./outcome";
import { recordDestroy, recordFailedDestroy, recordFailedFinish, recordFinish } from "./record-destroy";
import { recordProposal } from "./record-proposal";
import { recordFailedUpdate, recordProgram, recordUpdate } from "./record-update";
import { report } from "./report";

/** Records what came of an action: in the status, the Events, the finalizer, and what this process remembers. */
export async function record(reconcile: Reconcile, outcome: Outcome): Promise<Result> {
  switch (outcome.type) {
    case "stale":
      return "retry";
    case "unneeded":
    case "notRolledOut":
      return "done";
    case "sameDeclarations":
      return recordProgram(reconcile, outcome);
    case "finalizerAdded":
      return { requeueAfterMs: 0 };
    case "orphanRecorded":
      reconcile.state.orphaned = "recorded";
      return { requeueAfterMs: 0 };
    case "rests":
      return recordRest(reconcile, outcome);
    case "compared":
      return recordComparison(reconcile, outcome);
    case "proposed":
      return recordProposal(reconcile, outcome);
    case "waits":
      return recordWait(reconcile, outcome);
    case "updated":
      return recordUpdate(reconcile, outcome);
    case "updateFailed":
      return recordFailedUpdate(reconcile, outcome);
    case "finished":
      return recordFinish(reconcile, outcome);
    case "finishFailed":
      return recordFailedFinish(reconcile, outcome);
    case "destroyed":
      return recordDestroy(reconcile, outcome);
    case "destroyFailed":
      return recordFailedDestroy(reconcile, outcome);
  }
}

/** Live resources may have changed as well: the kind's own status fields are written again. */
async function recordRest(
  reconcile: Reconcile,
  { conditions, requeueAfterMs }: Extract<Outcome, { type: "rests" }>,
): Promise<Result> {
  const { context, object, state } = reconcile;
  const before = statusOf(object).conditions;
  if (conditions.some(({ type, status }) => type === "FieldConflict" && status === "False")) state.repairs.reset();
  for (const condition of conditions) {
    const event = eventOf(condition, before);
    if (event !== undefined) context.writer.event(object, "Warning", event.reason, event.note);
  }
  if (object.status !== undefined || conditions.length > 0) await report(reconcile, object, { conditions });
  return requeueAfterMs > 0 ? { requeueAfterMs } : "done";
}

function eventOf(condition: NewCondition, before: Condition[] | undefined) {
  const { type, status, reason, message } = condition;
  if (type === "DriftUnknown" && status === "True") return { reason: type, note: `${reason}: ${message}` };
  const isNews = reason === "BackOff" && findCondition(before, type)?.reason !== reason;
  return isNews ? { reason, note: message } : undefined;
}

/** Drift outside of the cluster causes no event, and polls leave out objects that are not in sync. */
const COMPARE_AGAIN_MS = 60_000;

async function recordComparison(
  reconcile: Reconcile,
  { resources, failures }: Extract<Outcome, { type: "compared" }>,
): Promise<Result> {
  const { context, facts, object, state, logger } = reconcile;
  const ended = outcomeOf(failures);
  const outcome = failures.length === 0 ? "compared" : ended === "terminal" ? "terminal" : "retryable";
  const conditions =
    failures.length > 0 ? failedConditions(failures) : observedConditions(resources.map(describePlanned));
  state.polledDrift = undefined;
  const drifted = facts.drift.ids.filter((id) => id !== POLLED_DRIFT);
  const { external, refreshEvery } = context.kind.capabilities;
  const rowsAgainMs = external !== undefined && resources.length > 0 ? COMPARE_AGAIN_MS : Number.POSITIVE_INFINITY;
  const againMs = Math.min(rowsAgainMs, (refreshEvery ?? Number.POSITIVE_INFINITY) * 1000);
  const untilMs = performance.now() + againMs;
  state.lastComparison = remembered(reconcile, { outcome, drifted, conditions, of: comparedState(facts), untilMs });
  logger.info({ changes: resources.length, failures }, "compared, as the object is only observed");
  await context.plans?.remove(context, object); // made in another mode
  const news = conditions.find((condition) => condition.status !== "False" || condition.reason === OBSERVED);
  if (news?.reason === OBSERVED && !isReported(facts.object.status.conditions, news)) {
    context.writer.event(object, "Normal", OBSERVED, news.message);
  }
  await report(reconcile, object, { ...handled(reconcile), conditions });
  if (outcome === "retryable") return retry(failures);
  return againMs < Number.POSITIVE_INFINITY ? { requeueAfterMs: againMs } : "done";
}

async function recordWait(
  reconcile: Reconcile,
  { failures, requeueAfterMs }: Extract<Outcome, { type: "waits" }>,
): Promise<Result> {
  const { object } = reconcile;
  const isDeletion = object.metadata.deletionTimestamp !== undefined;
  const conditions = (isDeletion ? deletingConditions : failedConditions)(failures);
  await report(reconcile, object, { conditions });
  return { requeueAfterMs };
}
