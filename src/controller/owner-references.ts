import { isApiError, type LiveObject } from "../../providers/kubernetes/client";
import { correctedReferences } from "../../providers/kubernetes/owner-references";
import type { Step } from "./context";
import { recordedIds } from "./kind-cache";

const RETRY_MS = 30_000;

/**
 * Removes owner references to the object from what its stack has, or is to have: those of earlier releases and of others. The garbage
 * collector would delete that with the object. This is no change of a plan, and does not wait for one: until it is done, a
 * deletion in the foreground goes around approvals, a pause and the deletion policy.
 *
 * @returns how long to wait before the next try, in ms; 0 when it needs none
 */
export async function correctOwnerReferences({
  context,
  item,
  object,
  logger,
}: Step<"item" | "object" | "logger", "cache" | "client">): Promise<number> {
  const { cache, client } = context;
  const { uid } = object.metadata;
  let again = 0;
  for (const live of [...cache.owned(uid, recordedIds(object)), ...cache.watched(item.key)]) {
    const { name, namespace, resourceVersion } = live.metadata;
    try {
      const ownerReferences = await correctedReferences(client, live, uid);
      if (ownerReferences === undefined) continue;
      const metadata = { uid: live.metadata.uid, resourceVersion, ownerReferences };
      await client.mergePatch(live, name, namespace, { metadata });
      logger.info({ resource: describe(live) }, "protected a resource from the garbage collector");
    } catch (error) {
      if (isApiError(error, 404, 409)) continue; // its event leads here again
      logger.warn(
        { err: error, resource: describe(live) },
        "failed to protect a resource from the garbage collector, retrying",
      );
      again = RETRY_MS;
    }
  }
  return again;
}

function describe({ kind, metadata: { namespace, name } }: LiveObject): string {
  return namespace === undefined ? `${kind} ${name}` : `${kind} ${namespace}/${name}`;
}
