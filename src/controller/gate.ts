import { isDeepStrictEqual } from "node:util";
import { TerminalError } from "../../providers/errors";
import type { LiveObject } from "../../providers/kubernetes/client";
import { recordedAuthors } from "../../stacks/contract/author-policy";
import { findCondition } from "../../stacks/contract/condition";
import type { ApprovalRecord } from "../../stacks/contract/object";
import { MAX_TEXT, type Plan, type PlanSpec } from "../../stacks/contract/plan";
import type { PreviewResult } from "../automation/engine";
import type { UpdateFailure } from "../automation/event-log";
import { type PlanEffects, planContents } from "../plan/contents";
import type { PlanDigests } from "../plan/digest";
import type { PlannedResource } from "../plan/effects";
import { refusalsOf } from "../plan/obstacles";
import { changesAnything, refuseUnknown, type StackPlan } from "../plan/plan";
import type { ResourcePlan } from "../plan/resource-plan";
import type { DestroyAction, Gate, UpdateAction } from "./action";
import type { KindContext, Step } from "./context";
import type { Preview } from "./facts";
import { describeApproval, describeDecision, type PlanDecision } from "./plan-decision";
import type { Plans } from "./plan-store";
import { isRestOf } from "./rest-of-plan";
import { reasonOf } from "./restraints";

/*
 * Between a plan and its application. An object whose plan waits is planned again when the object, its drift or the decision changes.
 * Only if exactly this was approved, by its digest, is it done, bound to the same plan: an approval of anything else has no effect.
 *
 * Plans and approvals are objects of the cluster, so a crash loses none. The object is planned again, and its operator crashed
 * - before the plan was `Applying`: the approval holds as before, until it expires or the digest is another;
 * - during the update or destroy: each step that remains must be one that was approved, or have been done already;
 * - after an update: nothing changes any more, and the approval is recorded with the stack.
 * With a key service, the key of digests is made at each start: what was approved before, or remains, needs another approval.
 */

/** What lets an operation begin. */
export interface Pass {
  type: "pass";
  /** A plan: the operation does exactly that, or ends. */
  bound?: Pick<PreviewResult, "plan" | "observed"> & Pick<StackPlan, "untracked">;
  /** Where the operation needed one. */
  approval?: ApprovalRecord;
}

/** A plan that waits for an approval, with the decision on it that does not apply it: a rejection, or an ignored approval. */
export interface Proposed {
  type: "proposed";
  spec: PlanSpec;
  /** Whose approvals have no effect. */
  authors: readonly string[] | undefined;
  decision: PlanDecision | undefined;
  resources: ResourcePlan[];
}

/** @param plan only called where the object's mode asks for it */
export async function passGate(
  step: Step<"object" | "facts" | "state", "kind" | "plans" | "programDigest" | "client">,
  action: UpdateAction | DestroyAction,
  plan: () => Promise<StackPlan>,
): Promise<Pass | { type: "failed"; failures: UpdateFailure[] } | Proposed> {
  if (action.gate === "none") return { type: "pass" };
  const planned = await plan();
  if (planned.failures.length > 0) return { type: "failed", failures: planned.failures };
  refuseUnknown(planned);
  refuseUnbound(planned);
  const { object, facts, state, context } = step;
  const { kind, plans, programDigest } = context;
  const authors = action.type === "update" ? authorsOf(step) : undefined; // deletions leave none
  const begun = plans && begunPlan(plans, kind, object);
  const pass: Pass = { type: "pass", bound: planned };
  if (!changesAnything(planned)) return { ...pass, ...(begun && { approval: recordedApproval(begun) }) };
  if (!needsApproval(action.gate, planned)) return pass;

  if (plans === undefined) {
    throw new TerminalError(
      "NotServed",
      `the mode ${facts.settings.mode} needs the CRDs of plans and approvals: run kindstack crds and apply what it prints, then restart the operator`,
    );
  }
  const { references = [] } = state.reads ?? {};
  const digests = await plans.digests({ ...planned, kind, programDigest, object, references });
  const refusals = await refusalsOf(planned.resources);
  const spec = specOf(step, action, { ...planned, refusals }, digests, authors);
  const decisionOn = (digest: string) => plans.decisionOn(kind, object, digest, authors);
  const decision = decisionOn(spec.digest);
  if (decision?.decision === "Approve") {
    const { approver: decidedBy, at: decidedAt, reason } = decision;
    const applying = {
      state: "Applying",
      decidedBy,
      decidedAt,
      ...(reason !== undefined && { message: reason }),
    } as const;
    await plans.write(context, object, spec, applying, { isTombstone: facts.object.isTombstone });
    return { ...pass, approval: approvalBy(decision) };
  }
  const begunBy = begun && decisionOn(begun.spec.digest);
  const mayGoOn = begunBy?.decision === "Approve" && decision?.decision !== "Reject";
  if (begun && mayGoOn && isRestOf(begun.spec, step, digests, planned))
    return { ...pass, approval: approvalBy(begunBy) };
  return { type: "proposed", spec, authors, decision, resources: shownOf(planned) };
}

/** The destroy of no stack needs nothing to be bound to. */
function refuseUnbound({ exists, plan, observed, operation }: StackPlan): void {
  if ((plan !== undefined && observed !== undefined) || (operation !== "update" && !exists)) return;
  throw new TerminalError("PlansUnsupported", "the engine does not hold updates to what their previews have told");
}

function approvalBy({ approver, digest, reason, at }: PlanDecision): ApprovalRecord {
  return { approver, digest, at, ...(reason !== undefined && { reason }) };
}

function needsApproval(gate: Gate, { resources, untracked }: StackPlan): boolean {
  if (gate === "all") return true;
  const isDestructive = ({ shown }: PlannedResource) => shown.operation === "delete" || shown.operation === "replace";
  return gate === "destructive" && (untracked.length > 0 || resources.some(isDestructive));
}

function specOf(
  { object, facts }: Step<"object" | "facts">,
  action: UpdateAction | DestroyAction,
  planned: PlanEffects,
  digests: PlanDigests,
  authors: readonly string[] | undefined,
): PlanSpec {
  const { digest, group } = digests;
  const { apiVersion, kind, metadata } = object;
  const { namespace, name, uid } = metadata;
  const { generation } = facts.object.metadata;
  const by = authors && { by: describeAuthors(authors) };
  const reason = action.type === "destroy" ? "Deleted" : reasonOf(facts, action.cause);
  return {
    object: { apiVersion, kind, ...(namespace !== undefined && { namespace }), name, uid, generation },
    digest,
    group,
    cause: { reason, ...by, at: new Date().toISOString() },
    ...planContents(planned, digests),
  };
}

function shownOf({ resources, untracked }: StackPlan): ResourcePlan[] {
  const removed = untracked.map(({ kind, metadata: { name } }): ResourcePlan => {
    return { operation: "delete", type: kind, name, fields: [] };
  });
  return [...resources.map(({ shown }) => shown), ...removed];
}

/** The plan of an object as it is now specified that was approved and begun. */
function begunPlan(plans: Plans, kind: KindContext["kind"], object: LiveObject): Plan | undefined {
  const plan = plans.get(kind, object);
  const { uid, generation } = object.metadata;
  const isOfObject = plan?.spec.object.uid === uid && plan.spec.object.generation === generation;
  return plan?.status.state === "Applying" && isOfObject ? plan : undefined;
}

/** The approval of a plan that was begun, as the plan tells of it: the object Approval may have expired. */
function recordedApproval({ spec: { digest }, status }: Plan): ApprovalRecord {
  const { decidedBy: approver = "", decidedAt: at = "", message: reason } = status;
  return { approver, digest, at, ...(reason !== undefined && { reason }) };
}

/** Tells of the approval of what was done, if it needed one. */
export function reportPass(
  { context: { writer } }: Step<never, "writer">,
  object: LiveObject,
  { approval }: Pass,
): void {
  if (approval !== undefined) writer.event(object, "Normal", "Approved", describeApproval(approval));
}

/** Whether the plan that a preview tells of still waits as it did: it is there, and decided as it was. */
export function stillWaits(
  { kind, plans }: KindContext,
  object: LiveObject,
  plan: NonNullable<Preview["plan"]>,
): boolean {
  const { digest, authors, decision } = plan;
  if (plans?.get(kind, object)?.spec.digest !== digest) return false;
  return describeDecision(plans.decisionOn(kind, object, digest, authors)) === decision;
}

/*
 * Who has made the change that a plan is of, where that restricts who may approve it. The object has names of a change also after it
 * was applied; then a plan of a drift, or of a new program, has no author.
 */

/** What stands in a plan for authors that nothing has recorded: then no user is known to be another one. */
const UNKNOWN = "[unknown]";

/**
 * @returns the users whose approvals are ignored; none where they are not known, and no approval counts; `undefined` where all
 *   approvals count
 */
function authorsOf({
  context: { kind, plans },
  object,
  facts,
}: Step<"object" | "facts", "kind" | "plans">): readonly string[] | undefined {
  const {
    metadata: { uid, generation },
    status: { stack, conditions },
  } = facts.object;
  const { ignoreFields } = facts.settings;
  if (!plans?.authorMayNotApprove) return undefined;
  const authors = recordedAuthors(object) ?? [];
  if (stack === undefined || !isDeepStrictEqual(stack.ignoreFields ?? [], ignoreFields)) return authors;
  const synced = findCondition(conditions, "Synced");
  if (synced?.observedGeneration !== generation) return authors;
  if (synced.status === "True") return undefined;
  const former = plans.get(kind, object)?.spec;
  // Without the plan that the condition tells of, the change may be anyone's.
  const isOfSame = former?.object.uid === uid && former.object.generation === generation;
  return isOfSame && former.cause.by === undefined ? undefined : authors;
}

/** Who has made the change, in a plan. */
function describeAuthors(authors: readonly string[]): string {
  return authors.length === 0 ? UNKNOWN : authors.join(", ").slice(0, MAX_TEXT);
}

/** Why an approval has no effect, and what to do. */
export function describeIgnored({ approver }: PlanDecision, by: string | undefined): string {
  return by === undefined || by === UNKNOWN
    ? `the approval by ${approver} has no effect: it is not recorded who made the change; change the object once more`
    : `the approval by ${approver} has no effect: the change is by ${by}, and needs the approval of another user`;
}
