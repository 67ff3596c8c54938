import { setTimeout as delay } from "node:timers/promises";
import { PendingError, RetryableError } from "../errors";
import { mayWait } from "../fence";
import { currentHold } from "../observation";
import { isApiError, type KubernetesClient, known } from "./client";
import { grantsRights, hasDependents } from "./object-types";
import { describeTermination, referenceTo } from "./termination";
import type { LiveObject, Manifest } from "./types";

const GONE_TIMEOUT_MS = 120_000;

/** Asks for the deletion of an object. Of one that a finalizer keeps, the rights that it grants end now. */
export async function deleteObject(client: KubernetesClient, live: LiveObject): Promise<void> {
  const { name, namespace, finalizers = [] } = live.metadata;
  const revoked = grantsRights(live) && finalizers.length > 0 ? await revokeRights(client, live) : undefined;
  const propagationPolicy = hasDependents(live) ? "Foreground" : "Background";
  await client.delete(live, name, namespace, { ...exactly(revoked ?? live), propagationPolicy });
}

/** What binds a write to an object and, in an update that is held to a plan, to the version that was compared. */
function exactly({ metadata: { uid, resourceVersion } }: LiveObject): { uid: string; resourceVersion?: string } {
  return currentHold() === undefined ? { uid } : { uid, resourceVersion };
}

/** Deletes an unmanaged object that has a reserved name, without its finalizers, which would keep it. */
export async function deleteUnmanaged(client: KubernetesClient, live: LiveObject): Promise<void> {
  const { name, namespace, finalizers = [] } = live.metadata;
  const released =
    finalizers.length > 0 &&
    (await client.mergePatch(live, name, namespace, { metadata: { ...exactly(live), finalizers: null } }));
  await client.delete(live, name, namespace, exactly(released || live));
}

/** @returns the object without subjects, if it could be changed */
export async function revokeRights(client: KubernetesClient, live: LiveObject): Promise<LiveObject | undefined> {
  const { name, namespace } = live.metadata;
  const isHeld = currentHold() !== undefined;
  try {
    if (isHeld) return await client.mergePatch(live, name, namespace, { metadata: exactly(live), subjects: [] });
    return await client.patchExactly(live, [{ op: "add", path: "/subjects", value: [] }]);
  } catch (error) {
    // Gone, another object by now, or of a role that we may not bind: only its deletion is left to do.
    if (!isApiError(error, 403, 404, ...(isHeld ? [] : [409]))) throw error;
    return undefined;
  }
}

/** Removes Kindstack's fields from an adopted object; those that it cannot do without stay. */
export async function relinquish(client: KubernetesClient, manifest: Manifest, live: LiveObject): Promise<void> {
  try {
    // Applying nothing removes every field that was ours alone. The UID keeps the apply from creating anything.
    const { metadata, ...type } = referenceTo(live);
    await client.apply({ ...type, metadata: { ...metadata, ...exactly(live) } });
  } catch (error) {
    if (!isApiError(error, 422)) throw error;
    await makeUnmanaged(client, grantsRights(live) ? { ...manifest, subjects: [] } : manifest, live);
  }
}

/** Makes an object unmanaged: it is kept, without ownership labels and owner references. */
export async function makeUnmanaged(client: KubernetesClient, manifest: Manifest, live: LiveObject): Promise<void> {
  const { ownerReferences: _, ...metadata } = manifest.metadata;
  // It may be served in another version of its group by now.
  await client.apply({ ...manifest, apiVersion: live.apiVersion, metadata: { ...metadata, ...exactly(live) } });
}

/**
 * Returns when an object is gone whose deletion the API server has accepted.
 *
 * @throws PendingError at once where the call may not wait, RetryableError after 2 min where it may
 */
export async function untilGone(client: KubernetesClient, object: LiveObject): Promise<void> {
  const deadline = performance.now() + GONE_TIMEOUT_MS;
  for (let wait = 50; ; wait = Math.min(wait * 1.5, 1000)) {
    const live = await known(client.find(object));
    if (live === undefined || live.metadata.uid !== object.metadata.uid) return;
    if (!mayWait()) {
      throw new PendingError("Terminating", await describeTermination(client, live), { object: referenceTo(live) });
    }
    if (performance.now() > deadline) throw new RetryableError("Terminating", await describeTermination(client, live));
    await delay(wait);
  }
}
