import type { PlanStatus } from "../../stacks/contract/plan";
import { approvalWords } from "../preview/plan-report";
import { describePlanned } from "./compare";
import {
  describeAll,
  describeFailures,
  isReported,
  WAITS_FOR_APPROVAL,
  waitsForApprovalConditions,
} from "./conditions";
import type { Reconcile, Result } from "./context";
import { comparedState } from "./facts";
import type { Proposed } from "./outcome";
import { describeDecision, type PlanDecision } from "./plan-store";

/** A plan of an object that is gone has no owner whose events lead back to it. */
const LOOK_AGAIN_MS = 600_000;

/** Records a plan that waits. A decision on it requeues the object, and so does every change; no clock does. */
export async function recordProposal(
  reconcile: Reconcile,
  { spec, rejection, resources }: Proposed,
  handled: { observedGeneration: number },
): Promise<Result> {
  const { context, facts, object, state, logger } = reconcile;
  const { kind, plans, program, writer } = context;
  const { uid, generation } = facts.metadata;
  await plans?.write(kind, object, spec, rejection ? rejectedStatus(rejection) : { state: "Pending" }, {
    gone: facts.gone,
  });
  const words = approvalWords(kind, { spec });
  const changes = describeAll(resources.map(describePlanned));
  const next = rejection === undefined ? `approve it with: kindstack approve ${words}` : describeRejection(rejection);
  const conditions = waitsForApprovalConditions(generation, describeFailures([{ message: `${next}; ${changes}` }]));
  const untilMs = rejection ? performance.now() + rejection.expiresAt - Date.now() : Number.POSITIVE_INFINITY;
  const { digest, group } = spec;
  state.lastComparison = {
    uid,
    generation,
    program,
    outcome: "compared",
    drifted: facts.drifted,
    conditions,
    of: comparedState(facts),
    plan: { digest, group, decision: describeDecision(rejection) },
    untilMs,
  };
  logger.info({ digest, group, cause: spec.cause.reason, actions: spec.actions, rejection }, "waits for an approval");
  const [news] = conditions;
  if (news !== undefined && !isReported(facts.status.conditions, news)) {
    if (rejection === undefined) writer.event(object, "Normal", WAITS_FOR_APPROVAL, news.message);
    else writer.event(object, "Warning", "Rejected", news.message);
  }
  if (facts.gone) return { requeueAfterMs: Math.min(untilMs - performance.now(), LOOK_AGAIN_MS) };
  await writer.writeStatus(object, state, { ...handled, conditions });
  return rejection === undefined ? "done" : { requeueAfterMs: untilMs - performance.now() };
}

function rejectedStatus(rejection: PlanDecision): PlanStatus {
  const { approver, at, reason } = rejection;
  return {
    state: "Rejected",
    ...(reason !== undefined && { message: reason }),
    decidedBy: approver,
    decidedAt: at,
  };
}

function describeRejection({ approver, reason, expiresAt }: PlanDecision): string {
  const until = new Date(expiresAt).toISOString().replace(/\.\d+Z$/, "Z");
  return `rejected by ${approver}${reason === undefined ? "" : `: ${reason}`} (until ${until})`;
}
