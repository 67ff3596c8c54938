import { ApiError, type Manifest } from "../../providers/kubernetes/client";
import { parseObject, statusOf } from "../../stacks/contract/kind";
import type { KindObject } from "../../stacks/contract/object";
import { isOutdated, loggerOf, ownedOf, type Turn } from "./context";
import type { OwnedView } from "./drift";

/** An object is tended to so often at most: a burst of changes is answered as a whole. */
export const TEND_INTERVAL_MS = 200;
const TEND_RETRY_MS = 5_000;

/**
 * Lets the kind do what needs no update. What is outdated by then is done when the newer state has come.
 *
 * @returns how long to wait before the next time, in ms; 0 when it needs no other
 */
export async function tend(turn: Turn): Promise<number> {
  const { context, object, memory } = turn;
  const { kind, client, view } = context;
  const { stack } = statusOf(object);
  if (kind.tend === undefined || stack === undefined) return 0;
  // What the caches lack would be left out of account. Its event leads here again, or its repair.
  const isUnseen = (seen: OwnedView | undefined) => seen !== undefined && seen.object === undefined;
  if (stack.resources?.some(({ id }) => isUnseen(view(id)))) return 0;
  const tooSoonMs = memory.tendedAt + TEND_INTERVAL_MS - performance.now();
  if (tooSoonMs > 0) return tooSoonMs;
  let parsed: KindObject;
  try {
    parsed = parseObject(kind, object);
  } catch {
    return 0; // an update will say what is wrong with the object
  }
  const apply = async (manifest: Manifest, fieldManager: string) => {
    memory.tendedAt = performance.now();
    const type = await client.resourceType(manifest.apiVersion, manifest.kind);
    try {
      memory.tended.wrote((await client.apply(type, manifest, { fieldManager })).object);
    } catch (error) {
      if (!isOutdated(error)) throw error;
    }
  };
  const tryOut = async (manifest: Manifest) => {
    const type = await client.resourceType(manifest.apiVersion, manifest.kind);
    try {
      await client.apply(type, manifest, { dryRun: true });
      return undefined;
    } catch (error) {
      if (error instanceof ApiError && error.status === 403) return error.message;
      throw error;
    }
  };
  try {
    const owned = ownedOf(turn).map((owned) => memory.tended.newest(owned));
    return (await kind.tend(parsed, { owned, apply, tryOut }))?.requeueAfterMs ?? 0;
  } catch (error) {
    loggerOf(turn).warn({ err: error }, "could not be tended to, tried again soon");
    return TEND_RETRY_MS;
  }
}
