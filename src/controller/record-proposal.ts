import { MAX_TEXT, type PlanSpec, type PlanStatus } from "../../stacks/contract/plan";
import { approvalWords } from "../plan/contents";
import { handled, remembered } from "./attempt";
import { describeIgnored } from "./authors";
import { isReported, WAITS_FOR_APPROVAL, waitsForApprovalConditions } from "./conditions";
import type { Reconcile, Result } from "./context";
import { clipped, describeAll, describePlanned } from "./describe";
import { comparedState } from "./facts";
import type { Proposed } from "./gate";
import { describeDecision, type PlanDecision } from "./plan-decision";
import { report } from "./report";

/** A plan of an object that is gone has no owner whose events lead back to it. */
const LOOK_AGAIN_MS = 600_000;

/**
 * Records a plan that waits. The object is requeued by a decision on it, by every change that a watch shows, and by the end of a
 * rejection. What no watch shows, such as a row, is not compared: plans may wait for days, and thousands of them at once. The
 * approval of a plan that is outdated by then has no effect.
 */
export async function recordProposal(
  reconcile: Reconcile,
  { spec, authors, decision, resources }: Proposed,
): Promise<Result> {
  const { context, facts, object, state, logger } = reconcile;
  const { kind, plans, writer } = context;
  await plans?.write(context, object, spec, statusOf(spec, decision), { isTombstone: facts.object.isTombstone });
  const words = approvalWords(kind, { spec });
  const changes = describeAll(resources.map(describePlanned));
  const next = decision === undefined ? `approve it with: kindstack approve ${words}` : describe(spec, decision);
  const conditions = waitsForApprovalConditions(clipped(`${next}; ${changes}`));
  const untilMs = decision ? performance.now() + decision.expiresAt - Date.now() : Number.POSITIVE_INFINITY;
  const { digest, group } = spec;
  state.lastComparison = remembered(reconcile, {
    outcome: "compared",
    drifted: facts.drift.ids,
    conditions,
    of: comparedState(facts),
    plan: { digest, authors, decision: describeDecision(decision) },
    untilMs,
  });
  logger.info({ digest, group, cause: spec.cause.reason, actions: spec.actions, decision }, "waits for an approval");
  const [news] = conditions;
  if (news !== undefined && !isReported(facts.object.status.conditions, news)) {
    if (decision === undefined) writer.event(object, "Normal", WAITS_FOR_APPROVAL, news.message);
    else writer.event(object, "Warning", REASONS[decision.decision], news.message);
  }
  if (facts.object.isTombstone) return { requeueAfterMs: Math.min(untilMs - performance.now(), LOOK_AGAIN_MS) };
  await report(reconcile, object, { ...handled(reconcile), conditions });
  return decision === undefined ? "done" : { requeueAfterMs: untilMs - performance.now() };
}

/** Of Events. An approval that counts is not recorded here. */
const REASONS = { Approve: "Approved", Reject: "Rejected", Ignored: "ApprovalIgnored" } as const;

function statusOf(spec: PlanSpec, decision: PlanDecision | undefined): PlanStatus {
  if (decision === undefined) return { state: "Pending" };
  if (decision.decision === "Ignored")
    return { state: "Pending", message: describe(spec, decision).slice(0, MAX_TEXT) };
  const { approver: decidedBy, at: decidedAt, reason } = decision;
  return { state: "Rejected", ...(reason !== undefined && { message: reason }), decidedBy, decidedAt };
}

function describe({ cause }: PlanSpec, decision: PlanDecision): string {
  if (decision.decision === "Ignored") return describeIgnored(decision, cause.by);
  const { approver, reason, expiresAt } = decision;
  const until = new Date(expiresAt).toISOString().replace(/\.\d+Z$/, "Z");
  return `rejected by ${approver}${reason === undefined ? "" : `: ${reason}`} (until ${until})`;
}
