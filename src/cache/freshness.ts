import type { LiveObject } from "../../providers/kubernetes/client";

/**
 * Whether the spec that a cache shows is the object's: an update to an earlier one deletes what came with a later one, and
 * a destroy must not be of a successor. Caches are behind for long where a watch has gone silent, and another replica has
 * worked on the object since.
 */
export function isFresh(cached: LiveObject, live: LiveObject | undefined): boolean {
  const [before, now] = [cached.metadata, live?.metadata];
  if (now?.uid !== before.uid) return false;
  if (before.deletionTimestamp !== undefined) return now.deletionTimestamp !== undefined;
  return now.generation === before.generation && now.deletionTimestamp === undefined;
}
