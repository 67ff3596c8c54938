import type { CallContext } from "../provider";
import { isGiven } from "./apply-effect";
import { writeAsRead } from "./apply-object";
import { type KubernetesClient, known } from "./client";
import { clientOf, lookUp } from "./connection";
import { deleteObject, makeUnmanaged, relinquish, untilGone } from "./delete-object";
import { appliedManifest } from "./ignored-fields";
import type { ObjectOutputs } from "./object-inputs";
import { refuseOutdated, removedFrom } from "./object-observation";
import { grantsRights, limitsNamespace, NAMESPACE, typeName } from "./object-types";
import { releasedReferences } from "./owner-references";
import { CREATED_ANNOTATION, OWNER_ANNOTATION, OWNER_UID_LABEL, ownerUidOf, wasCreated } from "./ownership";
import { isProtectedNamespace } from "./protected-namespaces";
import { referenceTo } from "./termination";
import type { LiveObject } from "./types";

/** Deletes what Kindstack created of a resource, and takes its fields from what it found. @throws RetryableError `PlanOutdated` */
export function removeObject(outs: ObjectOutputs, context: CallContext): Promise<void> {
  return asRead(outs, context, async (client, live) => {
    if (outs.existing) {
      if (live.metadata.deletionTimestamp) return; // it goes, and is known by its labels until then
      if (isGiven(live, outs) && (await endsWithHolder(client, outs))) await deleteObject(client, live, context);
      else await relinquish(client, appliedManifest(outs, live), live, context);
    } else if (limitsNamespace(live) && (await endsWithHolder(client, outs))) {
      return;
    } else if (outs.created && isDeletable(live)) {
      await deleteObject(client, live, context);
      if (outs.awaitDeletion !== false) await untilGone(client, live, context);
    } else {
      await relinquish(client, appliedManifest(outs, live), live, context);
    }
  });
}

/** Leaves the object as it is, unmanaged. */
export function releaseObject(outs: ObjectOutputs, context: CallContext): Promise<void> {
  return asRead(outs, context, (client, live) => makeUnmanaged(client, appliedManifest(outs, live), live, context));
}

/** What a deletion finds; see {@link DynamicProvider.observe}. */
export async function observeRemoval(outs: ObjectOutputs, context: CallContext): Promise<unknown> {
  const live = await known(lookUp(clientOf(context), outs.manifest, context?.snapshot));
  return live !== undefined && isStillOurs(live, outs) ? removedFrom(outs, live) : null;
}

/** Whether Kindstack made an object, and may delete it: a namespace that is protected by now stays. */
export function isDeletable(live: LiveObject): boolean {
  return wasCreated(live) && !(typeName(live) === NAMESPACE && isProtectedNamespace(live.metadata.name));
}

type Write = (client: KubernetesClient, live: LiveObject) => Promise<void>;

/** Runs a write to an object that is still the owner's; in an update that is held to a plan, to the version that was compared. */
function asRead(outs: ObjectOutputs, context: CallContext, write: Write): Promise<void> {
  const hold = context?.hold;
  return writeAsRead(async () => {
    const client = clientOf(context);
    const live = await known(client.find(outs.manifest));
    if (live === undefined || !isStillOurs(live, outs)) return; // gone, or another owner's by now
    if (hold !== undefined) refuseOutdated(hold, removedFrom(outs, live), outs, live, outs);
    await write(client, live);
  });
}

/**
 * An object that only lost its label is still ours. One that grants rights is ours whatever its label says: who has those
 * rights may write labels.
 */
function isStillOurs(live: LiveObject, outs: ObjectOutputs): boolean {
  const holder = ownerUidOf(live);
  const isSame = live.metadata.uid === outs.uid;
  return holder === outs.owner.uid || (isSame && (holder === undefined || grantsRights(live)));
}

/** Whether what an object ends with is being deleted, and does not leave the object behind. */
async function endsWithHolder(
  client: KubernetesClient,
  { deletedWith, manifest }: Pick<ObjectOutputs, "deletedWith" | "manifest">,
): Promise<boolean> {
  if (deletedWith === undefined) return false;
  const { apiVersion, kind, name, uid } = deletedWith;
  const object = await known(client.get({ apiVersion, kind }, name, manifest.metadata.namespace));
  if (object?.metadata.uid !== uid || object.metadata.deletionTimestamp === undefined) return false;
  return !object.metadata.finalizers?.includes("orphan");
}

async function isInEndingNamespace(client: KubernetesClient, { metadata }: LiveObject): Promise<boolean> {
  const namespace = await known(client.get({ apiVersion: "v1", kind: "Namespace" }, metadata.namespace ?? ""));
  return namespace?.metadata.deletionTimestamp !== undefined;
}

/**
 * Removes an object that an owner has and no state knows, as the deletion of its resource would: one that existed
 * before is only released. Does not wait until it is gone.
 *
 * @param seen the object with its owner's label
 * @param options with `release`, it is kept, unmanaged
 * @returns whether there was something to do
 */
export async function removeUntrackedObject(
  client: KubernetesClient,
  seen: LiveObject,
  { release }: { release: boolean },
): Promise<boolean> {
  const { name, namespace, resourceVersion } = seen.metadata;
  const owner = ownerUidOf(seen);
  const live = await known(client.find(seen));
  if (live === undefined || ownerUidOf(live) !== owner) return false; // gone, or another owner's by now
  if (release) {
    await client.mergePatch(live, name, namespace, {
      metadata: {
        resourceVersion,
        labels: { [OWNER_UID_LABEL]: null },
        annotations: { [OWNER_ANNOTATION]: null, [CREATED_ANNOTATION]: null },
        ownerReferences: releasedReferences(seen, owner),
      },
    });
    return true;
  }
  if (limitsNamespace(live) && (await isInEndingNamespace(client, live))) return false;
  const isEnding = live.metadata.deletionTimestamp !== undefined;
  if (wasCreated(seen) && isDeletable(live)) await deleteObject(client, live, undefined);
  else if (!isEnding) await relinquish(client, referenceTo(live), live, undefined);
  return !isEnding;
}
