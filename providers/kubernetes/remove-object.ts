import { currentHold } from "../observation";
import { writeAsRead } from "./apply-object";
import { type KubernetesClient, known } from "./client";
import { connectKubernetes, lookUp } from "./connection";
import { deleteObject, endOfOwner, makeUnmanaged, relinquish, untilGone } from "./delete-object";
import { appliedManifest } from "./ignored-fields";
import type { ObjectOutputs } from "./object-inputs";
import { refuseOutdated, removedFrom } from "./object-observation";
import { grantsRights, limitsNamespace } from "./object-types";
import { CREATED_ANNOTATION, OWNER_ANNOTATION, OWNER_UID_LABEL, ownerUidOf, wasCreated } from "./ownership";
import { referenceTo } from "./termination";
import type { LiveObject, Manifest } from "./types";

/** Deletes what Kindstack created of a resource, and takes its fields from what it found. @throws RetryableError `PlanOutdated` */
export function removeObject(outs: ObjectOutputs): Promise<void> {
  return asRead(outs, async (client, live) => {
    if (outs.existing) {
      if (live.metadata.deletionTimestamp) return; // it goes, and is known by its labels until then
      const end = await endOfOwner(client, outs.manifest);
      // The garbage collector would come late, and leave what has another owner, too.
      if (end === "ending" && isDependent(live, outs.manifest)) await deleteObject(client, live);
      else if (end === undefined) await relinquish(client, appliedManifest(outs, live), live);
    } else if (await limitsEndingNamespace(client, live, outs.manifest)) {
      return;
    } else if (outs.created && wasCreated(live)) {
      await deleteObject(client, live);
      if (outs.awaitDeletion !== false) await untilGone(client, live);
    } else {
      await relinquish(client, appliedManifest(outs, live), live);
    }
  });
}

/** Leaves the object as it is, unmanaged. */
export function releaseObject(outs: ObjectOutputs): Promise<void> {
  return asRead(outs, (client, live) => makeUnmanaged(client, appliedManifest(outs, live), live));
}

/** What a deletion finds; see {@link DynamicProvider.observe}. */
export async function observeRemoval(outs: ObjectOutputs): Promise<unknown> {
  const live = await known(lookUp(connectKubernetes(), outs.manifest));
  return live !== undefined && isStillOurs(live, outs) ? removedFrom(outs, live) : null;
}

type Write = (client: KubernetesClient, live: LiveObject) => Promise<void>;

/** Runs a write to an object that is still the owner's; in an update that is held to a plan, to the version that was compared. */
function asRead(outs: ObjectOutputs, write: Write): Promise<void> {
  const hold = currentHold();
  return writeAsRead(hold !== undefined, async () => {
    const client = connectKubernetes();
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

/** Whether an object has to stay: a namespace that ends with the same owner is limited until it is gone. */
async function limitsEndingNamespace(client: KubernetesClient, live: LiveObject, owned: Manifest): Promise<boolean> {
  return limitsNamespace(live) && (await endOfOwner(client, owned)) === "ending";
}

/** Whether a live object has an owner that the manifest names. */
function isDependent(live: LiveObject, manifest: Manifest): boolean {
  const owners = (manifest.metadata.ownerReferences ?? []).map(({ uid }) => uid);
  return live.metadata.ownerReferences?.some(({ uid }) => owners.includes(uid)) ?? false;
}

/**
 * Removes an object that an owner has and no state knows, as the deletion of its resource would: one that existed
 * before is only released. Does not wait until it is gone.
 *
 * @param seen the object with its owner's label
 * @param options with `release`, it is kept, unmanaged
 */
export async function removeOrphan(seen: LiveObject, { release }: { release: boolean }): Promise<void> {
  const client = connectKubernetes();
  const { name, namespace, resourceVersion, ownerReferences = [] } = seen.metadata;
  const owner = ownerUidOf(seen);
  if (release) {
    await client.mergePatch(seen, name, namespace, {
      metadata: {
        resourceVersion,
        labels: { [OWNER_UID_LABEL]: null },
        annotations: { [OWNER_ANNOTATION]: null, [CREATED_ANNOTATION]: null },
        ownerReferences: ownerReferences.filter(({ uid }) => uid !== owner),
      },
    });
    return;
  }
  const live = await known(client.find(seen));
  if (live === undefined || ownerUidOf(live) !== owner) return; // gone, or another owner's by now
  if (await limitsEndingNamespace(client, live, live)) return;
  if (wasCreated(seen) && wasCreated(live)) await deleteObject(client, live);
  else await relinquish(client, referenceTo(live), live);
}
