import { MAX_TEXT, type PlanSpec, type PlanStatus } from "../../stacks/contract/plan";
import { approvalWords } from "../plan/contents";
import { POLLED_DRIFT } from "./collect-facts";
import {
  failedConditions,
  isReported,
  OBSERVED,
  observedConditions,
  WAITS_FOR_APPROVAL,
  waitsForApprovalConditions,
} from "./conditions";
import type { Result, Step } from "./context";
import { clipped, describeAll, describePlanned, outcomeOf } from "./describe";
import { type Preview, previewedState } from "./facts";
import type { Proposed } from "./gate";
import { describeIgnored } from "./gate";
import type { Outcome } from "./outcome";
import { describeDecision, type PlanDecision } from "./plan-decision";
import { handled, remembered, report, retry } from "./report";

type TellStep = Step<"object" | "facts" | "state" | "logger", "kind" | "plans" | "writer" | "client">;

/** Drift outside of the cluster causes no event, and polls leave out objects that are not in sync. */
const PREVIEW_AGAIN_MS = 60_000;

/** Records what an update of an object that is only observed would do. */
export async function recordPreview(
  step: TellStep,
  { resources, failures }: Extract<Outcome, { type: "previewed" }>,
): Promise<Result> {
  const { context, facts, object, state, logger } = step;
  const { external, refreshEvery = Number.POSITIVE_INFINITY } = context.kind.capabilities;
  const isTold = failures.length === 0;
  const outcome: Preview["outcome"] = isTold
    ? "previewed"
    : outcomeOf(failures) === "terminal"
      ? "terminal"
      : "retryable";
  state.polledDrift = undefined;
  const rowsAgainMs = external !== undefined && resources.length > 0 ? PREVIEW_AGAIN_MS : Number.POSITIVE_INFINITY;
  const againMs = Math.min(rowsAgainMs, refreshEvery * 1000);
  logger.info({ changes: resources.length, failures }, "compared, as the object is only observed");
  await context.plans?.remove(context, object); // made in another mode
  const conditions = isTold ? observedConditions(resources.map(describePlanned)) : failedConditions(failures);
  const drifted = facts.drift.ids.filter((id) => id !== POLLED_DRIFT);
  const isNews = conditions.some(({ reason }) => reason === OBSERVED);
  const preview = { outcome, drifted, conditions, untilMs: performance.now() + againMs };
  await tell(step, preview, "Normal", isNews ? OBSERVED : undefined);
  if (outcome === "retryable") return retry(failures);
  return againMs < Number.POSITIVE_INFINITY ? { requeueAfterMs: againMs } : "done";
}

/** A plan of an object that is gone has no owner whose events lead back to it. */
const LOOK_AGAIN_MS = 600_000;

/**
 * Records a plan that waits. The object is requeued by a decision on it, by every change that a watch shows, and by the end of a
 * rejection. What no watch shows, such as a row, is not compared: plans may wait for days, and thousands of them at once. The
 * approval of a plan that is outdated by then has no effect.
 */
export async function recordProposal(
  step: TellStep,
  { spec, authors, decision, resources }: Proposed,
): Promise<Result> {
  const { context, facts, object, logger } = step;
  const { isTombstone } = facts.object;
  await context.plans?.write(context, object, spec, planStatus(spec, decision), { isTombstone });
  const changes = describeAll(resources.map(describePlanned));
  const words = approvalWords(context.kind, { spec });
  const next = decision === undefined ? `approve it with: kindstack approve ${words}` : describe(spec, decision);
  const refusals = spec.steps.flatMap(({ refusal }) => refusal ?? []);
  const failing = refusals.length > 0 ? `it would fail: ${describeAll(refusals)}; ` : "";
  const conditions = waitsForApprovalConditions(clipped(`${next}; ${failing}${changes}`));
  const waitsMs = decision ? decision.expiresAt - Date.now() : Number.POSITIVE_INFINITY;
  const untilMs = performance.now() + waitsMs;
  const { digest, group } = spec;
  logger.info({ digest, group, cause: spec.cause.reason, actions: spec.actions, decision }, "waits for an approval");
  const plan = { digest, authors, decision: describeDecision(decision) };
  const preview = { outcome: "previewed", drifted: facts.drift.ids, conditions, plan, untilMs } as const;
  if (decision === undefined) await tell(step, preview, "Normal", WAITS_FOR_APPROVAL);
  else await tell(step, preview, "Warning", REASONS[decision.decision]);
  if (isTombstone) return { requeueAfterMs: Math.min(waitsMs, LOOK_AGAIN_MS) };
  return decision === undefined ? "done" : { requeueAfterMs: waitsMs };
}

/** Remembers a preview, which is not repeated as long as it is valid, and tells of it. @param reason of an Event, if its state is one */
async function tell(
  step: TellStep,
  preview: Pick<Preview, "outcome" | "drifted" | "conditions" | "plan" | "untilMs">,
  type: "Normal" | "Warning",
  reason: string | undefined,
): Promise<void> {
  const { context, facts, object, state } = step;
  const { conditions } = preview;
  state.lastPreview = remembered(step, { ...preview, of: previewedState(facts) });
  const [synced] = conditions;
  if (reason !== undefined && synced !== undefined && !isReported(facts.object.status.conditions, synced)) {
    context.writer.event(object, type, reason, synced.message);
  }
  await report(step, object, { ...handled(step), conditions: [...conditions] });
}

/** Of Events. An approval that counts is not recorded here. */
const REASONS = { Approve: "Approved", Reject: "Rejected", Ignored: "ApprovalIgnored" } as const;

function planStatus(spec: PlanSpec, decision: PlanDecision | undefined): PlanStatus {
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
