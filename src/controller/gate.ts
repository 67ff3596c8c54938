import { TerminalError } from "../../providers/errors";
import type { LiveObject } from "../../providers/kubernetes/client";
import { ownerUidOf } from "../../providers/kubernetes/ownership";
import { foundNothing } from "../../providers/observation";
import type { ApprovalRecord } from "../../stacks/contract/object";
import type { PlanSpec } from "../../stacks/contract/plan";
import type { PreviewResult } from "../automation/engine";
import type { UpdateFailure } from "../automation/failures";
import { planContents } from "../plan/contents";
import type { PlanDigests } from "../plan/digest";
import type { PlannedResource } from "../plan/effects";
import { adoptedFields } from "../plan/fields";
import { changesAnything, refuseUnknown, type StackPlan } from "../plan/plan";
import type { ResourcePlan } from "../plan/resource-plan";
import type { DestroyAction, Gate, UpdateAction } from "./action";
import { authorsOf, describeAuthors } from "./authors";
import type { KindContext, Step } from "./context";
import type { Comparison } from "./facts";
import { reasonOf } from "./mode-gate";
import { describeApproval, describeDecision, type PlanDecision } from "./plan-decision";
import type { Plans } from "./plan-store";

/*
 * Between a plan and its application. Where changes wait for an approval, each reconcile plans what it would do. Only if exactly
 * this was approved, by its digest, is it done, bound to the same plan: an approval of anything else has no effect.
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

/**
 * @param plan only called where the object's mode asks for it
 * @returns what lets the operation begin, or why it does not
 */
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
  const pass: Pass = { type: "pass", bound: planned };
  if (!changesAnything(planned) || !needsApproval(action.gate, planned)) return pass;

  const { object, facts, state, context } = step;
  const { kind, plans, programDigest } = context;
  if (plans === undefined) {
    throw new TerminalError(
      "NotServed",
      `the mode ${facts.settings.mode} needs the CRDs of plans and approvals: run kindstack crds and apply what it prints, then restart the operator`,
    );
  }
  const { references = [] } = state.reads ?? {};
  const digests = await plans.digests({ ...planned, kind, programDigest, object, references });
  const authors = action.type === "update" ? authorsOf(step) : undefined; // deletions leave none
  const spec = specOf(step, action, planned, digests, authors);
  const decision = plans.find(kind, object, spec.digest, authors);
  if (decision?.decision === "Approve") {
    const { approver: decidedBy, at: decidedAt } = decision;
    const applying = { state: "Applying", decidedBy, decidedAt } as const;
    await plans.write(context, object, spec, applying, { isTombstone: facts.object.isTombstone });
    return { ...pass, approval: approvalBy(decision) };
  }
  const begun = decision?.decision === "Reject" ? undefined : approvalOfRest(plans, step, digests, planned, authors);
  if (begun !== undefined) return { ...pass, approval: approvalBy(begun) };
  return { type: "proposed", spec, authors, decision, resources: shownOf(planned) };
}

/** @throws TerminalError for an engine that does not bind itself; the destroy of no stack needs nothing to be bound to */
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
  planned: StackPlan,
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

/**
 * What was approved and begun needs no other approval for the steps that remain, if each is what it was: a failure that passes, or
 * a crash, has ended it.
 */
function approvalOfRest(
  plans: Plans,
  { context: { kind }, object }: Step<"object", "kind">,
  digests: PlanDigests,
  { resources, observed }: StackPlan,
  authors: readonly string[] | undefined,
): PlanDecision | undefined {
  const begun = plans.get(kind, object);
  const { uid, generation } = object.metadata;
  const isOfObject = begun?.spec.object.uid === uid && begun.spec.object.generation === generation;
  if (begun?.status.state !== "Applying" || !isOfObject) return undefined;
  const decision = plans.find(kind, object, begun.spec.digest, authors);
  if (decision?.decision !== "Approve") return undefined;
  const approved = new Set(begun.spec.steps.map(({ digest }) => digest));
  const leaving = new Set(resources.filter(isLeaving).map(({ change }) => change.urn));
  const made = new Set(resources.filter((resource) => isMade(resource, uid)).map(({ change }) => change.urn));
  // A destroy that is cut off may have saved nothing: the state still has what it deleted.
  const isGone = (urn: string) => observed !== undefined && foundNothing(observed, urn);
  const wasApproved = ([urn, digest]: [string, string]) =>
    approved.has(digest) ||
    leaving.has(urn) ||
    isGone(urn) ||
    (made.has(urn) && approved.has(digests.creations.get(urn) ?? ""));
  return [...digests.steps].every(wasApproved) ? decision : undefined;
}

/** Whether what a step deletes is on its way out: the step changes nothing any more. */
function isLeaving({ shown, live }: PlannedResource): boolean {
  return shown.operation === "delete" && live?.metadata.deletionTimestamp !== undefined;
}

/** Whether what a step creates is there already, as it would be, and no state has it. */
function isMade({ change, live, inputs }: PlannedResource, uid: string): boolean {
  if (change.operation !== "create" || live === undefined || inputs === undefined) return false;
  return ownerUidOf(live) === uid && adoptedFields(live, inputs.manifest).length === 0;
}

/** Tells of the approval of what was done, if it needed one. */
export function reportPass(
  { context: { writer } }: Step<never, "writer">,
  object: LiveObject,
  { approval }: Pass,
): void {
  if (approval !== undefined) writer.event(object, "Normal", "Approved", describeApproval(approval));
}

/** Whether the plan that a comparison tells of still waits as it did: it is there, and decided as it was. */
export function stillWaits(
  { kind, plans }: KindContext,
  object: LiveObject,
  plan: NonNullable<Comparison["plan"]>,
): boolean {
  const { digest, authors, decision } = plan;
  if (plans?.get(kind, object)?.spec.digest !== digest) return false;
  return describeDecision(plans.find(kind, object, digest, authors)) === decision;
}
