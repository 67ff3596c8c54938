import { PendingError } from "../../providers/errors";
import { type KubernetesClient, known, type LiveObject } from "../../providers/kubernetes/client";
import { deleteObject } from "../../providers/kubernetes/delete-object";
import { objectsAmong } from "../../providers/kubernetes/object";
import { ownerUidOf, wasApplied } from "../../providers/kubernetes/ownership";
import { removeOrphan } from "../../providers/kubernetes/remove-object";
import { describeTermination, referenceTo } from "../../providers/kubernetes/termination";
import { ownerDescription } from "../../stacks/contract/kind";
import { objectId } from "../../stacks/contract/object";
import { watchedObjects } from "../../stacks/contract/watched";
import type { StackResource } from "../automation/event-log";
import { deletedWith, deletesOthers, findUntracked } from "../plan/untracked";
import type { Reconcile } from "./context";
import { recordedIds } from "./kind-cache";
import { listOwned } from "./view";

/*
 * What an update that was cut off has made may be in no state. The next update of the same object as it was makes it again
 * and so takes it over; when the object has changed meanwhile, or is deleted, only its owner's mark leads to it.
 */

/** Removes what a plan has told of, if it is still what it was. @param isGone whether the object has been destroyed */
export async function removePlannedUntracked(
  { context: { client, kind }, item: { key } }: Reconcile,
  untracked: readonly LiveObject[],
  { isGone }: { isGone: boolean },
): Promise<void> {
  const ending = new Set(isGone ? await deletedWith(kind, key, untracked) : []);
  for (const object of untracked) {
    if (ending.has(object)) await deleteObject(client, object, undefined);
    else await removeOrphan(client, object, { release: false });
  }
}

/** Deletes what others made for an object that is gone, also what no update has seen. */
export async function removeDeletedWith({ context: { client, kind }, item: { key } }: Reconcile): Promise<void> {
  if (!deletesOthers(kind)) return;
  for (const object of await deletedWith(kind, key, await watchedObjects(client, kind, key)))
    await deleteObject(client, object, undefined);
}

/** Removes what still carries an object's own mark after its destroy, and returns when that is gone. @throws PendingError */
export async function removeMarked(
  client: KubernetesClient,
  marked: readonly LiveObject[],
  options: { release: boolean },
): Promise<void> {
  for (const object of marked) {
    if (object.metadata.deletionTimestamp === undefined) await removeOrphan(client, object, options);
  }
  if (options.release) return;
  for (const object of marked) {
    const live = await known(client.find(object));
    const isEnding = live?.metadata.uid === object.metadata.uid && live.metadata.deletionTimestamp !== undefined;
    if (isEnding)
      throw new PendingError("Terminating", await describeTermination(client, live), { object: referenceTo(live) });
  }
}

/**
 * What the caches show with an object's own mark, though its destroy has ended: a state that is old, or was lost, did not have it.
 *
 * @param deleted what the destroy has deleted or released, which a cache may still show
 */
export function findMarked({ context: { cache }, object }: Reconcile, deleted: readonly StackResource[]): LiveObject[] {
  const { uid } = object.metadata;
  const ids = new Set(objectsAmong(deleted).map(({ manifest }) => objectId(manifest)));
  const isLeft = (owned: LiveObject) => ownerUidOf(owned) === uid && wasApplied(owned) && !ids.has(objectId(owned));
  return cache.owned(uid, recordedIds(object)).filter(isLeft);
}

/** @param kept the resources that the object is to have */
export async function removeUntracked(
  reconcile: Reconcile,
  kept: readonly StackResource[],
  options: { release: boolean },
): Promise<void> {
  const { context, object } = reconcile;
  const { kind, cache } = context;
  const ids = new Set(objectsAmong(kept).map(({ manifest }) => objectId(manifest)));
  // A cache may be behind what an update has made that was cut off a moment ago.
  const cached = cache.owned(object.metadata.uid, recordedIds(object));
  const owned = [...cached, ...(await listOwned(reconcile, kind.owns))];
  for (const object of findUntracked(owned, ids)) await removeOrphan(context.client, object, options);
  await removeExternal(reconcile, kept, options);
}

/** The same of what is outside of the cluster. */
export async function removeExternal(
  { context: { kind }, item, object, work, signal }: Reconcile,
  kept: readonly StackResource[],
  options: { release: boolean },
): Promise<void> {
  const { uid } = object.metadata;
  const owner = { uid, description: ownerDescription(kind, item.key) };
  const outputs = kept.map(({ outputs }) => outputs);
  await kind.capabilities.external?.removeOrphans(owner, outputs, options, { ...work, signal });
}
