import { TerminalError } from "../../providers/errors";
import type { LiveObject } from "../../providers/kubernetes/client";
import { ownerUidOf } from "../../providers/kubernetes/ownership";
import { foundNothing, type Observations } from "../../providers/observation";
import { withinSnapshot } from "../../providers/snapshot";
import { type ApprovalRecord, stackName } from "../../stacks/contract/object";
import type { PlanSpec } from "../../stacks/contract/plan";
import type { PreviewResult, UpOptions } from "../automation/engine";
import type { UpdateFailure } from "../automation/failures";
import type { Program } from "../automation/program";
import type { PlannedResource } from "../preview/effects";
import { adoptedFields } from "../preview/fields";
import { planContents } from "../preview/plan-contents";
import type { PlanDigests } from "../preview/plan-digest";
import type { ResourcePlan } from "../preview/report";
import { changesAnything, type PlanOperation, untrackedBeside } from "../preview/untracked";
import type { DestroyAction, Gate, UpdateAction } from "./action";
import { authorsOf, describeAuthors } from "./authors";
import { effectsOf } from "./compare";
import type { Reconcile } from "./context";
import { objectForDestroy, objectForUpdate } from "./missing-state";
import type { Proposed } from "./outcome";
import { reasonOf } from "./plan-cause";
import type { PlanDecision } from "./plan-decision";
import type { Plans } from "./plan-store";
import { deletedWith, seenOwned } from "./untracked";

/*
 * Where changes wait for an approval, each reconcile previews what it would do. Only if exactly this was approved, by its digest,
 * is it done, bound to the same preview: an approval of anything else has no effect.
 */

/** What an update, or a destroy, is bound to. */
export interface Binding extends Required<Pick<UpOptions, "plan" | "observed">> {
  /** What is removed besides the stack's resources. */
  untracked: readonly LiveObject[];
  /** Absent where nothing needs one. */
  approval?: ApprovalRecord;
}

/** The engine's options that bind an operation to this. */
export function bindingOptions(binding: Binding | undefined): Pick<UpOptions, "plan" | "observed" | "message"> {
  if (binding === undefined) return {};
  const { plan, observed, approval } = binding;
  return { plan, observed, ...(approval && { message: `approved ${describeApproval(approval)}` }) };
}

export type Proposal = { type: "bound"; binding: Binding } | { type: "failed"; failures: UpdateFailure[] } | Proposed;

/** @returns what the update is bound to, or that it waits */
export function proposeUpdate(reconcile: Reconcile, action: UpdateAction, program: Program): Promise<Proposal> {
  const { context, item, signal } = reconcile;
  const { engine, kind } = context;
  const { sdkRuntime } = kind.capabilities;
  const options = { refresh: true, plans: true, signal, sdkRuntime, object: objectForUpdate(reconcile) };
  return withinSnapshot(new Map(), async () => {
    const preview = await engine.preview(stackName(kind, item.key), program, options);
    return propose(reconcile, action, preview, "update");
  });
}

/** @returns what the destroy is bound to, or that it waits */
export function proposeDestroy(reconcile: Reconcile, action: DestroyAction): Promise<Proposal> {
  const { context, item, signal } = reconcile;
  const { engine, kind } = context;
  return withinSnapshot(new Map(), async () => {
    const object = objectForDestroy(reconcile, action);
    const preview = await engine.previewDestroy(stackName(kind, item.key), { plans: true, signal, object });
    return propose(reconcile, action, preview, action.release ? "release" : "delete");
  });
}

/** What a reconcile is about to do. */
interface Work {
  operation: PlanOperation;
  resources: readonly PlannedResource[];
  /** What is removed besides the stack's resources. */
  untracked: readonly LiveObject[];
  /** Digests of what the writes would overwrite, by URN. */
  observed: Observations;
}

async function propose(
  reconcile: Reconcile,
  action: UpdateAction | DestroyAction,
  preview: PreviewResult,
  operation: PlanOperation,
): Promise<Proposal> {
  const { object, item, facts, state, context } = reconcile;
  if (preview.failures.length > 0) return { type: "failed", failures: preview.failures };
  const { changes, observed = new Map() } = preview;
  const others = operation === "delete" ? deletedWith(context.kind, item.key, context.cache.watched(item.key)) : [];
  const untracked = untrackedBeside(await seenOwned(reconcile), changes, operation, others);
  const effect = { removed: operation !== "update", orphaned: operation === "release" };
  const work = { operation, resources: await effectsOf(reconcile, changes, effect), untracked, observed };
  const binding = { ...boundBy(preview, operation), untracked };
  if (!changesAnything(changes, untracked) || !needsApproval(action.gate, work)) return { type: "bound", binding };

  const { kind, plans, programDigest } = context;
  if (plans === undefined) {
    throw new TerminalError(
      "NotServed",
      `the mode ${facts.mode} needs the CRDs of plans and approvals: run kindstack crds and apply what it prints, then restart the operator`,
    );
  }
  const { references = [] } = state.reads ?? {};
  const digests = await plans.digests({ kind, programDigest, object, changes, references, ...work });
  const authors = action.type === "update" ? authorsOf(reconcile) : undefined; // deletions leave none
  const spec = specOf(reconcile, action, work, digests, authors);
  const decision = plans.find(kind, object, spec.digest, authors);
  if (decision?.decision === "Approve") {
    const { approver: decidedBy, at: decidedAt } = decision;
    const applying = { state: "Applying", decidedBy, decidedAt } as const;
    await plans.write(kind, object, spec, applying, { isTombstone: facts.isTombstone });
    return { type: "bound", binding: { ...binding, approval: recordOf(decision) } };
  }
  const begun = decision?.decision === "Reject" ? undefined : approvalOfRest(plans, reconcile, digests, work, authors);
  if (begun !== undefined) return { type: "bound", binding: { ...binding, approval: recordOf(begun) } };
  return { type: "proposed", spec, authors, decision, resources: shownOf(work) };
}

/** @throws TerminalError for an engine that does not bind itself; the destroy of no stack needs nothing to be bound to */
function boundBy({ exists, plan, observed }: PreviewResult, operation: PlanOperation): Omit<Binding, "untracked"> {
  const isBound = plan !== undefined && observed !== undefined;
  if (isBound || (operation !== "update" && !exists)) return { plan, observed };
  throw new TerminalError("PlansUnsupported", "the engine does not hold updates to what their previews have told");
}

function needsApproval(gate: Gate, { resources, untracked }: Work): boolean {
  if (gate === "all") return true;
  const isDestructive = ({ shown }: PlannedResource) => shown.operation === "delete" || shown.operation === "replace";
  return gate === "destructive" && (untracked.length > 0 || resources.some(isDestructive));
}

function specOf(
  reconcile: Reconcile,
  action: UpdateAction | DestroyAction,
  { resources, untracked }: Work,
  digests: PlanDigests,
  authors: readonly string[] | undefined,
): PlanSpec {
  const { digest, group } = digests;
  const by = authors && { by: describeAuthors(authors) };
  const reason = action.type === "destroy" ? "Deleted" : reasonOf(reconcile.facts, action.cause);
  const cause = { reason, ...by, at: new Date().toISOString() };
  return { object: plannedObject(reconcile), digest, group, cause, ...planContents(resources, untracked, digests) };
}

function shownOf({ resources, untracked }: Work): ResourcePlan[] {
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
  { context: { kind }, object }: Reconcile,
  digests: PlanDigests,
  { resources, observed }: Work,
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
  const isGone = (urn: string) => foundNothing(observed, urn);
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

function plannedObject({ object, facts }: Reconcile): PlanSpec["object"] {
  const { apiVersion, kind, metadata } = object;
  const { namespace, name, uid } = metadata;
  const { generation } = facts.metadata;
  return { apiVersion, kind, ...(namespace !== undefined && { namespace }), name, uid, generation };
}

function recordOf({ approver, digest, reason, at }: PlanDecision): ApprovalRecord {
  return { approver, digest, at, ...(reason !== undefined && { reason }) };
}

/** `by alice: CHG-4711 (sha256:…)` */
export function describeApproval({ approver, digest, reason }: ApprovalRecord): string {
  return `by ${approver}${reason === undefined ? "" : `: ${reason}`} (${digest})`;
}
