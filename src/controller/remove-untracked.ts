import { PendingError } from "../../providers/errors";
import { known, type LiveObject } from "../../providers/kubernetes/client";
import { deleteObject } from "../../providers/kubernetes/delete-object";
import { objectsAmong } from "../../providers/kubernetes/object";
import { ownerUidOf, wasApplied } from "../../providers/kubernetes/ownership";
import { removeOrphan } from "../../providers/kubernetes/remove-object";
import { describeTermination, referenceTo } from "../../providers/kubernetes/termination";
import { ownerDescription } from "../../stacks/contract/kind";
import { objectId, objectKey } from "../../stacks/contract/object";
import { watchedObjects } from "../../stacks/contract/watched";
import type { UpResult } from "../automation/engine";
import type { StackResource } from "../automation/event-log";
import { deletedWith, deletesOthers, findUntracked } from "../plan/untracked";
import { visible } from "../text/plain-text";
import type { DestroyAction } from "./action";
import type { Step } from "./context";
import { recordedIds } from "./kind-cache";
import { listOwned } from "./operator-view";

/*
 * What an update that was cut off has made may be in no state. The next update of the same object as it was makes it again
 * and so takes it over; when the object has changed meanwhile, or is deleted, only its owner's mark leads to it. With a plan,
 * only what the plan has told of is removed.
 */

type Owner = Step<"item" | "object" | "signal" | "work", "kind" | "cache" | "client" | "writer">;

/** @param planned what a plan has told of; `undefined` without one */
export async function removeAfterUpdate(
  owner: Owner,
  { resources }: UpResult,
  { planned, mayHaveUntracked }: { planned: readonly LiveObject[] | undefined; mayHaveUntracked: boolean },
): Promise<void> {
  if (planned !== undefined) for (const object of planned) await remove(owner, object, { release: false });
  else if (mayHaveUntracked) await removeUntracked(owner, resources, { release: false });
}

/**
 * Removes what a destroy did not find in the state, and returns when that is gone.
 *
 * @param planned what a plan has told of; `undefined` without one
 * @returns whether nothing is left that needs another plan
 * @throws PendingError
 */
export async function removeAfterDestroy(
  owner: Owner,
  { release, mayHaveUntracked }: DestroyAction,
  { found, deleted }: UpResult,
  planned: readonly LiveObject[] | undefined,
): Promise<boolean> {
  const isPlanned = planned !== undefined;
  if (isPlanned) await removePlanned(owner, planned);
  else if (!release) await removeDeletedWith(owner);
  // A state that had nothing proves nothing.
  const isProven = found && deleted.length > 0;
  if (!isPlanned && (mayHaveUntracked || !found)) await removeUntracked(owner, [], { release });
  else if (!isPlanned && !isProven) await removeExternal(owner, [], { release });
  else if (!found) await removeExternal(owner, [], { release: true }); // what is in no plan is not deleted
  const marked = findMarked(owner, deleted).filter((object) => !isProven || !isEnding(object));
  const known = new Set(planned?.map(objectId));
  const isUnplanned = isPlanned && !release && marked.some((one) => !isEnding(one) && !known.has(objectId(one)));
  if (!isUnplanned) await removeMarked(owner, marked, { release });
  return !isUnplanned;
}

/** If it is still what it was. */
async function removePlanned(owner: Owner, planned: readonly LiveObject[]): Promise<void> {
  const { client, kind } = owner.context;
  const { key } = owner.item;
  const others = new Set(await deletedWith(kind, key, planned));
  for (const object of planned) {
    if (others.has(object)) await deleteObject(client, object, undefined);
    else await remove(owner, object, { release: false });
  }
}

/** An Event tells of it, as the history has what the state had alone. */
async function remove({ context, object }: Owner, untracked: LiveObject, options: { release: boolean }): Promise<void> {
  const removed = await removeOrphan(context.client, untracked, options);
  if (!removed) return;
  const what = visible(`${untracked.kind} ${objectKey(untracked.metadata)}`);
  const note = `${options.release ? "released" : "removed"} ${what}, which its stack did not have`;
  context.writer.event(object, "Normal", "Untracked", note);
}

/** Deletes what others made for an object that is gone, also what no update has seen. */
async function removeDeletedWith({ context: { client, kind }, item: { key } }: Owner): Promise<void> {
  if (!deletesOthers(kind)) return;
  for (const object of await deletedWith(kind, key, await watchedObjects(client, kind, key)))
    await deleteObject(client, object, undefined);
}

/** Removes what still carries an object's own mark after its destroy, and returns when that is gone. @throws PendingError */
async function removeMarked(owner: Owner, marked: readonly LiveObject[], options: { release: boolean }): Promise<void> {
  const { client } = owner.context;
  for (const object of marked) if (!isEnding(object)) await remove(owner, object, options);
  if (options.release) return;
  for (const object of marked) {
    const live = await known(client.find(object));
    if (live?.metadata.uid === object.metadata.uid && isEnding(live))
      throw new PendingError("Terminating", await describeTermination(client, live), { object: referenceTo(live) });
  }
}

/**
 * What the caches show with an object's own mark, though its destroy has ended: a state that is old, or was lost, did not have it.
 *
 * @param deleted what the destroy has deleted or released, which a cache may still show
 */
function findMarked({ context: { cache }, object }: Owner, deleted: readonly StackResource[]): LiveObject[] {
  const { uid } = object.metadata;
  const ids = new Set(objectsAmong(deleted).map(({ manifest }) => objectId(manifest)));
  const isLeft = (owned: LiveObject) => ownerUidOf(owned) === uid && wasApplied(owned) && !ids.has(objectId(owned));
  return cache.owned(uid, recordedIds(object)).filter(isLeft);
}

function isEnding({ metadata }: LiveObject): boolean {
  return metadata.deletionTimestamp !== undefined;
}

/** @param kept the resources that the object is to have */
async function removeUntracked(
  owner: Owner,
  kept: readonly StackResource[],
  options: { release: boolean },
): Promise<void> {
  const { context, object } = owner;
  const { kind, cache } = context;
  const ids = new Set(objectsAmong(kept).map(({ manifest }) => objectId(manifest)));
  // A cache may be behind what an update has made that was cut off a moment ago.
  const cached = cache.owned(object.metadata.uid, recordedIds(object));
  const owned = [...cached, ...(await listOwned(owner, kind.owns))];
  for (const untracked of findUntracked(owned, ids)) await remove(owner, untracked, options);
  await removeExternal(owner, kept, options);
}

/** The same of what is outside of the cluster. */
async function removeExternal(
  { context: { kind }, item, object, work, signal }: Owner,
  kept: readonly StackResource[],
  options: { release: boolean },
): Promise<void> {
  const { uid } = object.metadata;
  const owner = { uid, description: ownerDescription(kind, item.key) };
  const outputs = kept.map(({ outputs }) => outputs);
  await kind.capabilities.external?.removeOrphans(owner, outputs, options, { ...work, signal });
}
