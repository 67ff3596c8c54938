import { isApiError, type LiveObject, type Manifest } from "../../providers/kubernetes/client";
import { correctedReferences } from "../../providers/kubernetes/owner-references";
import { CodeEndedError } from "../../stacks/contract/code-ended";
import { parseServed } from "../../stacks/contract/kind";
import { type KindObject, objectKey } from "../../stacks/contract/object";
import { isOutdated, type Step } from "./context";
import { type CachedView, ownedOf, recordedIds } from "./kind-cache";

/** An object is maintained so often at most: a burst of changes is answered as a whole. */
export const MAINTAIN_INTERVAL_MS = 200;
const RETRY_MS = 5_000;

/**
 * Lets the kind do what needs no update. What is outdated by then is done when the newer state has come.
 *
 * @returns how long to wait before the next time, in ms; 0 when it needs no other
 */
export async function maintain(
  step: Step<"object" | "state" | "facts" | "logger", "kind" | "client" | "cache" | "writer">,
): Promise<number> {
  const { context, object, state, facts, logger } = step;
  const { kind, client, cache } = context;
  if (kind.capabilities.maintain === undefined) return 0;
  // What the caches lack would be left out of account. Its event leads here again, or its repair.
  const isUnseen = (seen: CachedView | undefined) => seen !== undefined && seen.object === undefined;
  if (facts.object.status.stack?.resources?.some(({ id }) => isUnseen(cache.view(id)))) return 0;
  const tooSoonMs = state.maintainedAt + MAINTAIN_INTERVAL_MS - performance.now();
  if (tooSoonMs > 0) return tooSoonMs;
  let parsed: KindObject;
  try {
    parsed = await parseServed(kind, object);
  } catch (error) {
    if (error instanceof CodeEndedError) return RETRY_MS;
    return 0; // an update will say what is wrong with the object
  }
  const apply = async (manifest: Manifest, fieldManager: string) => {
    state.maintainedAt = performance.now();
    try {
      state.maintained.record((await client.apply(manifest, { fieldManager })).object);
    } catch (error) {
      if (!isOutdated(error)) throw error;
    }
  };
  const tryOut = async (manifest: Manifest) => {
    try {
      await client.apply(manifest, { dryRun: true });
      return undefined;
    } catch (error) {
      if (isApiError(error, 403)) return error.message;
      throw error;
    }
  };
  const remove = async ({ apiVersion, kind: name, metadata }: LiveObject) => {
    if (facts.settings.mode !== "Apply") return; // where deletions wait for approvals, nothing is deleted here: no plan would tell of it
    await client.delete({ apiVersion, kind: name }, metadata.name, metadata.namespace, { uid: metadata.uid });
  };
  const warn = (about: LiveObject, reason: string, message: string) =>
    context.writer.event(about, "Warning", reason, message);
  try {
    const cached = ownedOf(step);
    state.maintained.forgetShown(cached);
    const owned = cached.map((object) => state.maintained.latest(object));
    return (
      (await kind.capabilities.maintain(parsed, { owned, apply, tryOut, remove, warn, memory: state.memory }))
        ?.requeueAfterMs ?? 0
    );
  } catch (error) {
    logger.warn({ err: error }, "maintenance failed, retrying");
    return RETRY_MS;
  }
}

const PROTECTION_RETRY_MS = 30_000;

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
      logger.info(
        { resource: `${live.kind} ${objectKey(live.metadata)}` },
        "protected a resource from the garbage collector",
      );
    } catch (error) {
      if (isApiError(error, 404, 409)) continue; // its event leads here again
      logger.warn(
        { err: error, resource: `${live.kind} ${objectKey(live.metadata)}` },
        "failed to protect a resource from the garbage collector, retrying",
      );
      again = PROTECTION_RETRY_MS;
    }
  }
  return again;
}
