import type { LiveObject } from "../../providers/kubernetes/client";
import { objectsAmong } from "../../providers/kubernetes/object";
import { removeOrphan } from "../../providers/kubernetes/remove-object";
import { ownerDescription } from "../../stacks/contract/kind";
import { objectId } from "../../stacks/contract/object";
import type { StackResource } from "../automation/event-log";
import { findUntracked } from "../preview/untracked";
import type { Reconcile } from "./context";

/*
 * What an update that was cut off has made may be in no state. The next update of the same object as it was makes it again
 * and so takes it over; when the object has changed meanwhile, or is deleted, only its owner's mark leads to it.
 */

/** Removes what a plan has told of, if it is still what it was. */
export async function removePlannedUntracked(untracked: readonly LiveObject[]): Promise<void> {
  for (const object of untracked) await removeOrphan(object, { release: false });
}

/** @param kept the resources that the object is to have */
export async function removeUntracked(
  { context: { kind, cache }, item, object }: Reconcile,
  kept: readonly StackResource[],
  options: { release: boolean },
): Promise<void> {
  const { uid } = object.metadata;
  const ids = new Set(objectsAmong(kept).map(({ manifest }) => objectId(manifest)));
  for (const object of findUntracked(cache.owned(uid), ids)) await removeOrphan(object, options);
  const owner = { uid, description: ownerDescription(kind, item.key) };
  const outputs = kept.map(({ outputs }) => outputs);
  await kind.capabilities.external?.removeOrphans(owner, outputs, options);
}
