import type { LiveObject } from "../../providers/kubernetes/client";
import { ownedFieldsDigest } from "../../providers/kubernetes/ownership";
import type { OwnedRecord } from "../../stacks/contract/object";
import { compareResourceVersions } from "./informer";

/** What the caches show of one owned object. */
export interface OwnedView {
  object: LiveObject | undefined;
  /** The newest version that the cache of its type has seen. */
  cacheVersion: string;
}

/**
 * The ids of the recorded resources that are gone, or whose applied fields somebody changed.
 *
 * @param appliedVersions the version that Kindstack's own last apply left, by id: a cache that has not seen it yet shows
 *   the past, and the event that is still to come leads here again
 */
export function findDrift(
  records: readonly OwnedRecord[],
  appliedVersions: ReadonlyMap<string, string>,
  view: (id: string) => OwnedView | undefined,
): string[] {
  return records
    .filter(({ id, fields }) => {
      const seen = view(id);
      if (seen === undefined) return false; // a type that nobody watches
      const { object, cacheVersion } = seen;
      const applied = appliedVersions.get(id);
      const version = object?.metadata.resourceVersion ?? cacheVersion;
      if (applied !== undefined && compareResourceVersions(version, applied) < 0) return false;
      if (object === undefined || object.metadata.deletionTimestamp) return true;
      return ownedFieldsDigest(object) !== fields;
    })
    .map(({ id }) => id);
}
