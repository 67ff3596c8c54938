import { ownerUidOf } from "../../providers/kubernetes/ownership";
import { foundNothing } from "../../providers/observation";
import type { PlanSpec } from "../../stacks/contract/plan";
import type { PlanDigests } from "../plan/digest";
import type { PlannedResource } from "../plan/effects";
import { adoptedFields } from "../plan/fields";
import type { StackPlan } from "../plan/plan";
import type { Step } from "./context";

/**
 * Whether what was planned is what remains of a plan that was begun, and needs no other approval: a failure that passes, or a crash,
 * has ended it. A plan lists a limited number of steps; those beyond need another approval. A new row that is
 * written is observed as nothing, which keeps the digest of its step; an adopted one needs another approval
 * (providers/postgres/row-observation.ts).
 */
export function isRestOf(
  begun: PlanSpec,
  { object }: Step<"object">,
  digests: PlanDigests,
  { resources, observed }: StackPlan,
): boolean {
  const { uid } = object.metadata;
  const approved = new Set(begun.steps.map(({ digest }) => digest));
  const leaving = new Set(resources.filter(isLeaving).map(({ change }) => change.urn));
  const made = new Set(resources.filter((resource) => isMade(resource, uid)).map(({ change }) => change.urn));
  // A destroy that is cut off may have saved nothing: the state still has what it deleted.
  const isGone = (urn: string) => observed !== undefined && foundNothing(observed, urn);
  const wasApproved = ([urn, digest]: [string, string]) =>
    approved.has(digest) ||
    leaving.has(urn) ||
    isGone(urn) ||
    (made.has(urn) && approved.has(digests.creations.get(urn) ?? ""));
  return [...digests.steps].every(wasApproved);
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
