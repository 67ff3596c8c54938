import { PendingError } from "../../providers/errors";
import { known, type LiveObject } from "../../providers/kubernetes/client";
import { deleteObject } from "../../providers/kubernetes/delete-object";
import { objectsAmong } from "../../providers/kubernetes/object";
import { ownerUidOf, wasApplied } from "../../providers/kubernetes/ownership";
import { removeUntrackedObject } from "../../providers/kubernetes/remove-object";
import { describeTermination, referenceTo } from "../../providers/kubernetes/termination";
import { ownerDescription } from "../../stacks/contract/kind";
import { objectId, objectKey } from "../../stacks/contract/object";
import { watchedObjects } from "../../stacks/contract/watched";
import type { StackResource } from "../automation/event-log";
import { deletedWith, deletesOthers, findUntracked } from "../plan/untracked";
import { visible } from "../text/plain-text";
import { failureToTell, type Step } from "./context";
import { recordedIds } from "./kind-cache";
import { listOwned } from "./operator-view";
import type { Destroyed, Outcome, Updated } from "./outcome";

/*
 * What an update that was cut off has made may be in no state. The next update of the same object as it was makes it again
 * and so takes it over; when the object has changed meanwhile, or is deleted, only its owner's mark leads to it. With a plan,
 * only what the plan has told of is removed.
 */

type Owner = Step<"item" | "object" | "signal" | "work" | "logger", "kind" | "cache" | "client" | "writer">;

/** Removes what an update or a destroy leaves besides the stack. @returns the outcome, or that this has failed */
export async function removeUntracked(owner: Owner, outcome: Outcome): Promise<Outcome> {
  if (outcome.type !== "updated" && outcome.type !== "destroyed") return outcome;
  try {
    if (outcome.type === "updated") await removeAfterUpdate(owner, outcome);
    else if (!(await removeAfterDestroy(owner, outcome))) return { type: "stale" };
    return outcome;
  } catch (error) {
    const failures = [failureToTell(error, owner)];
    const { object } = outcome;
    if (outcome.type === "destroyed") return { type: "destroyFailed", object, failures, deleted: outcome.deleted };
    return { type: "updateFailed", action: outcome.action, object, failures, partial: undefined };
  }
}

async function removeAfterUpdate(
  owner: Owner,
  { action, result: { resources, madeAgain }, pass }: Updated,
): Promise<void> {
  const planned = pass.bound?.untracked;
  if (planned !== undefined) for (const object of planned) await remove(owner, object, { release: false });
  else if (action.mayHaveUntracked || madeAgain) await removeBeside(owner, resources, { release: false });
}

/**
 * Removes what a destroy did not find in the state, and returns when that is gone.
 *
 * @returns whether nothing is left that needs another plan
 * @throws PendingError
 */
async function removeAfterDestroy(owner: Owner, { action, result, pass }: Destroyed): Promise<boolean> {
  const { release, mayHaveUntracked } = action;
  const { found, deleted } = result;
  // A state that had nothing proves nothing.
  const isProven = found && deleted.length > 0;
  const findLeft = () => findMarked(owner, deleted).filter((object) => !isProven || !isEnding(object));

  const planned = pass.bound?.untracked;
  if (planned === undefined) {
    if (!release) await removeDeletedWith(owner);
    const isCutOff = mayHaveUntracked || !found;
    const removed = isCutOff ? await removeBeside(owner, [], { release }) : [];
    if (!isCutOff && !isProven) await removeExternal(owner, [], { release });
    await removeMarked(owner, removed, findLeft(), { release });
    return true;
  }
  const removed = await removePlanned(owner, planned);
  if (!found) await removeExternal(owner, [], { release: true }); // what is in no plan is not deleted
  const known = new Set(planned.map(objectId));
  const left = findLeft();
  if (!release && left.some((one) => !isEnding(one) && !known.has(objectId(one)))) return false;
  await removeMarked(owner, removed, left, { release });
  return true;
}

/** If it is still what it was. @returns the object's own ones, which may not be gone yet */
async function removePlanned(owner: Owner, planned: readonly LiveObject[]): Promise<readonly LiveObject[]> {
  const { client, kind } = owner.context;
  const { key } = owner.item;
  const others = await deletedWith(kind, key, planned);
  for (const object of others) await deleteObject(client, object, undefined);
  const own = planned.filter((object) => !others.includes(object));
  for (const object of own) await remove(owner, object, { release: false });
  return own;
}

async function remove(owner: Owner, untracked: LiveObject, options: { release: boolean }): Promise<void> {
  const removed = await removeUntrackedObject(owner.context.client, untracked, options);
  if (removed) tell(owner, `${untracked.kind} ${objectKey(untracked.metadata)}`, options);
}

/** By an Event, as the history has what the state had alone. */
function tell({ context, object }: Owner, what: string, { release }: { release: boolean }): void {
  const note = `${release ? "released" : "removed"} ${visible(what)}, which its stack did not have`;
  context.writer.event(object, "Normal", "Untracked", note);
}

/** Deletes what others made for an object that is gone, also what no update has seen. */
async function removeDeletedWith({ context: { client, kind }, item: { key } }: Owner): Promise<void> {
  if (!deletesOthers(kind)) return;
  for (const object of await deletedWith(kind, key, await watchedObjects(client, kind, key)))
    await deleteObject(client, object, undefined);
}

/**
 * Removes what still carries an object's own mark after its destroy, and returns when that is gone.
 *
 * @param removed what is removed already, and may not be gone
 * @throws PendingError
 */
async function removeMarked(
  owner: Owner,
  removed: readonly LiveObject[],
  marked: readonly LiveObject[],
  options: { release: boolean },
): Promise<void> {
  const { client } = owner.context;
  const uids = new Set(removed.map(({ metadata }) => metadata.uid));
  const others = marked.filter(({ metadata }) => !uids.has(metadata.uid));
  for (const object of others) if (!isEnding(object)) await remove(owner, object, options);
  if (options.release) return;
  for (const object of [...removed, ...others]) {
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

/**
 * @param kept the resources that the object is to have
 * @returns the objects that it found, which may not be gone yet
 */
async function removeBeside(
  owner: Owner,
  kept: readonly StackResource[],
  options: { release: boolean },
): Promise<readonly LiveObject[]> {
  const { context, object } = owner;
  const { kind, cache } = context;
  const ids = new Set(objectsAmong(kept).map(({ manifest }) => objectId(manifest)));
  // A cache may be behind what an update has made that was cut off a moment ago.
  const cached = cache.owned(object.metadata.uid, recordedIds(object));
  const owned = [...cached, ...(await listOwned(owner, kind.owns))];
  const found = findUntracked(owned, ids);
  for (const untracked of found) await remove(owner, untracked, options);
  await removeExternal(owner, kept, options);
  return found;
}

/** The same of what is outside of the cluster. */
async function removeExternal(
  from: Owner,
  kept: readonly StackResource[],
  options: { release: boolean },
): Promise<void> {
  const { context, item, object, work, signal } = from;
  const { kind } = context;
  const owner = { uid: object.metadata.uid, description: ownerDescription(kind, item.key) };
  const outputs = kept.map(({ outputs }) => outputs);
  const removed = await kind.capabilities.external?.removeUntracked(owner, outputs, options, { ...work, signal });
  for (const what of removed ?? []) tell(from, what, options);
}
