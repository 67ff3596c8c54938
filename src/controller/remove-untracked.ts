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

type Removal = Step<"item" | "object" | "signal" | "work" | "logger", "kind" | "cache" | "client" | "writer">;

/** Removes what an update or a destroy leaves besides the stack. @returns the outcome, or that this has failed */
export async function removeUntracked(removal: Removal, outcome: Outcome): Promise<Outcome> {
  if (outcome.type !== "updated" && outcome.type !== "destroyed") return outcome;
  try {
    if (outcome.type === "updated") await removeAfterUpdate(removal, outcome);
    else if (!(await removeAfterDestroy(removal, outcome))) return { type: "stale" };
    return outcome;
  } catch (error) {
    const failures = [failureToTell(error, removal)];
    const { object } = outcome;
    if (outcome.type === "destroyed") return { type: "destroyFailed", object, failures, deleted: outcome.deleted };
    return { type: "updateFailed", action: outcome.action, object, failures, partial: undefined };
  }
}

async function removeAfterUpdate(
  removal: Removal,
  { action, result: { resources, madeAgain }, pass }: Updated,
): Promise<void> {
  const planned = pass.bound?.untracked;
  if (planned !== undefined) for (const object of planned) await remove(removal, object, { release: false });
  else if (action.mayHaveUntracked || madeAgain) await removeBeside(removal, resources, { release: false });
}

/**
 * Removes what a destroy did not find in the state.
 *
 * @returns whether nothing is left that needs another plan
 * @throws PendingError while any of that is there
 */
async function removeAfterDestroy(removal: Removal, { action, result, pass }: Destroyed): Promise<boolean> {
  const { release, mayHaveUntracked } = action;
  const { found, deleted } = result;
  // A state that had nothing proves nothing.
  const isProven = found && deleted.length > 0;
  const findLeft = () => findMarked(removal, deleted).filter((object) => !isProven || !isEnding(object));

  const planned = pass.bound?.untracked;
  if (planned === undefined) {
    if (!release) await removeDeletedWith(removal);
    const isCutOff = mayHaveUntracked || !found;
    const removed = isCutOff ? await removeBeside(removal, [], { release }) : [];
    if (!isCutOff && !isProven) await removeExternal(removal, [], { release });
    await removeMarked(removal, removed, findLeft(), { release });
    return true;
  }
  const removed = await removePlanned(removal, planned);
  if (!found) await removeExternal(removal, [], { release: true }); // what is in no plan is not deleted
  const known = new Set(planned.map(objectId));
  const left = findLeft();
  if (!release && left.some((one) => !isEnding(one) && !known.has(objectId(one)))) return false;
  await removeMarked(removal, removed, left, { release });
  return true;
}

/** If it is still what it was. @returns the object's own ones, which may not be gone yet */
async function removePlanned(removal: Removal, planned: readonly LiveObject[]): Promise<readonly LiveObject[]> {
  const { client, kind } = removal.context;
  const { key } = removal.item;
  const others = await deletedWith(kind, key, planned);
  for (const object of others) await deleteObject(client, object, undefined);
  const own = planned.filter((object) => !others.includes(object));
  for (const object of own) await remove(removal, object, { release: false });
  return own;
}

async function remove(removal: Removal, untracked: LiveObject, options: { release: boolean }): Promise<void> {
  const removed = await removeUntrackedObject(removal.context.client, untracked, options);
  if (removed) tell(removal, `${untracked.kind} ${objectKey(untracked.metadata)}`, options);
}

/** By an Event, as the history has what the state had alone. */
function tell({ context, object }: Removal, what: string, { release }: { release: boolean }): void {
  const note = `${release ? "released" : "removed"} ${visible(what)}, which its stack did not have`;
  context.writer.event(object, "Normal", "Untracked", note);
}

/** Deletes what others made for an object that is gone, also what no update has seen. */
async function removeDeletedWith({ context: { client, kind }, item: { key } }: Removal): Promise<void> {
  if (!deletesOthers(kind)) return;
  for (const object of await deletedWith(kind, key, await watchedObjects(client, kind, key)))
    await deleteObject(client, object, undefined);
}

/**
 * Removes what still carries an object's own mark after its destroy.
 *
 * @param removed what is removed already, and may not be gone
 * @throws PendingError while any of that is there
 */
async function removeMarked(
  removal: Removal,
  removed: readonly LiveObject[],
  marked: readonly LiveObject[],
  options: { release: boolean },
): Promise<void> {
  const { client } = removal.context;
  const uids = new Set(removed.map(({ metadata }) => metadata.uid));
  const others = marked.filter(({ metadata }) => !uids.has(metadata.uid));
  for (const object of others) if (!isEnding(object)) await remove(removal, object, options);
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
function findMarked({ context: { cache }, object }: Removal, deleted: readonly StackResource[]): LiveObject[] {
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
  removal: Removal,
  kept: readonly StackResource[],
  options: { release: boolean },
): Promise<readonly LiveObject[]> {
  const { context, object } = removal;
  const { kind, cache } = context;
  const ids = new Set(objectsAmong(kept).map(({ manifest }) => objectId(manifest)));
  // A cache may be behind what an update has made that was cut off a moment ago.
  const cached = cache.owned(object.metadata.uid, recordedIds(object));
  const owned = [...cached, ...(await listOwned(removal, kind.owns))];
  const found = findUntracked(owned, ids);
  for (const untracked of found) await remove(removal, untracked, options);
  await removeExternal(removal, kept, options);
  return found;
}

/** The same of what is outside of the cluster. */
async function removeExternal(
  removal: Removal,
  kept: readonly StackResource[],
  options: { release: boolean },
): Promise<void> {
  const { context, item, object, work, signal } = removal;
  const { kind } = context;
  const owner = { uid: object.metadata.uid, description: ownerDescription(kind, item.key) };
  const outputs = kept.map(({ outputs }) => outputs);
  const removed = await kind.capabilities.external?.removeUntracked(owner, outputs, options, { ...work, signal });
  for (const what of removed ?? []) tell(removal, what, options);
}
