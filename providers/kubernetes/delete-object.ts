import { setTimeout as delay } from "node:timers/promises";
import { PendingError, RetryableError } from "../errors";
import type { CallContext } from "../provider";
import { isApiError, type KubernetesClient, known } from "./client";
import { grantsRights, hasDependents } from "./object-types";
import { describeTermination, referenceTo } from "./termination";
import type { LiveObject, Manifest } from "./types";

const GONE_TIMEOUT_MS = 120_000;

/** Asks for the deletion of an object. Of one that a finalizer keeps, the rights that it grants end now. */
export async function deleteObject(client: KubernetesClient, live: LiveObject, context: CallContext): Promise<void> {
  const { name, namespace, finalizers = [] } = live.metadata;
  const revoked = grantsRights(live) && finalizers.length > 0 ? await revokeRights(client, live, context) : undefined;
  const propagationPolicy = hasDependents(live) ? "Foreground" : "Background";
  await client.delete(live, name, namespace, { ...exactly(revoked ?? live, context), propagationPolicy });
}

/** What binds a write to an object and, in an update that is held to a plan, to the version that was compared. */
function exactly(
  { metadata: { uid, resourceVersion } }: LiveObject,
  context: CallContext,
): { uid: string; resourceVersion?: string } {
  return context?.hold === undefined ? { uid } : { uid, resourceVersion };
}

/** Deletes an unmanaged object that has a reserved name, without its finalizers, which would keep it. */
export async function deleteUnmanaged(client: KubernetesClient, live: LiveObject, context: CallContext): Promise<void> {
  const { name, namespace, finalizers = [] } = live.metadata;
  const released =
    finalizers.length > 0 &&
    (await client.mergePatch(live, name, namespace, { metadata: { ...exactly(live, context), finalizers: null } }));
  await client.delete(live, name, namespace, exactly(released || live, context));
}

/** @returns the object without subjects, if it could be changed */
export async function revokeRights(
  client: KubernetesClient,
  live: LiveObject,
  context: CallContext,
): Promise<LiveObject | undefined> {
  const { name, namespace } = live.metadata;
  const isHeld = context?.hold !== undefined;
  try {
    if (isHeld)
      return await client.mergePatch(live, name, namespace, { metadata: exactly(live, context), subjects: [] });
    return await client.patchExactly(live, [{ op: "add", path: "/subjects", value: [] }]);
  } catch (error) {
    // Gone, another object by now, or of a role that we may not bind: only its deletion is left to do.
    if (!isApiError(error, 403, 404, ...(isHeld ? [] : [409]))) throw error;
    return undefined;
  }
}

/** Removes Kindstack's fields from an adopted object; those that it cannot do without stay. */
export async function relinquish(
  client: KubernetesClient,
  manifest: Manifest,
  live: LiveObject,
  context: CallContext,
): Promise<void> {
  try {
    // Applying nothing removes every field that was ours alone. The UID keeps the apply from creating anything.
    const { metadata, ...type } = referenceTo(live);
    await client.apply({ ...type, metadata: { ...metadata, ...exactly(live, context) } });
  } catch (error) {
    if (!isApiError(error, 422)) throw error;
    await makeUnmanaged(client, grantsRights(live) ? { ...manifest, subjects: [] } : manifest, live, context);
  }
}

/** Makes an object unmanaged: it is kept, without ownership labels and owner references. */
export async function makeUnmanaged(
  client: KubernetesClient,
  manifest: Manifest,
  live: LiveObject,
  context: CallContext,
): Promise<void> {
  const { ownerReferences: _, ...metadata } = manifest.metadata;
  // It may be served in another version of its group by now.
  await client.apply({
    ...manifest,
    apiVersion: live.apiVersion,
    metadata: { ...metadata, ...exactly(live, context) },
  });
}

/**
 * Returns when an object is gone whose deletion the API server has accepted.
 *
 * @throws PendingError at once in an operator, where a call that waits holds a worker that others need, perhaps to end what is
 *   waited for; an event leads back. RetryableError after 2 min in a plain `pulumi up`, where nothing would try again
 */
export async function untilGone(client: KubernetesClient, object: LiveObject, context: CallContext): Promise<void> {
  const deadline = performance.now() + GONE_TIMEOUT_MS;
  for (let wait = 50; ; wait = Math.min(wait * 1.5, 1000)) {
    const live = await known(client.find(object));
    if (live === undefined || live.metadata.uid !== object.metadata.uid) return;
    if (context !== undefined) {
      throw new PendingError("Terminating", await describeTermination(client, live), { object: referenceTo(live) });
    }
    if (performance.now() > deadline) throw new RetryableError("Terminating", await describeTermination(client, live));
    await delay(wait);
  }
}
