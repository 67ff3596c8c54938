import { hash } from "node:crypto";
import type { ApiError, LiveObject, OwnerReference } from "../../providers/kubernetes/client";
import { isAsApplied } from "../../providers/kubernetes/ownership";
import { statusOf } from "../../stacks/contract/kind";
import type { OwnedRecord, StackRecord } from "../../stacks/contract/object";
import { metadataDigest } from "../../stacks/contract/references";
import { compareResourceVersions } from "../cache/change";
import type { Expectations } from "./own-writes";

/** The cached objects of a kind, their resources and the targets of their references. */
export interface KindCache {
  object(key: string): LiveObject | undefined;
  /** The last state of an object that was deleted in spite of its finalizer, with a deletion timestamp. */
  tombstone(key: string): LiveObject | undefined;
  /** @param recorded ids of the stack's resources, see {@link OwnerIndex.owned} */
  owned(uid: string, recorded: ReadonlySet<string>): LiveObject[];
  watched(key: string): LiveObject[];
  /** An owned object by its id (`objectId`); `undefined` when its type is not watched. */
  view(id: string): CachedView | undefined;
  /** The error of the type of the owned object with this id: the API server does not serve it, so no cache is current. */
  unserved(id: string): ApiError | undefined;
  /** The target of a reference, by its id; `undefined` when its type is not watched. */
  referenced(id: string): CachedView | undefined;
  /** How to call the object of this UID in a message; `undefined` when there is none. */
  describeOwner(uid: string): string | undefined;
}

/** What a cache shows of one object. */
export interface CachedView {
  object: LiveObject | undefined;
  /** The newest version that the cache of its type has seen. */
  cacheVersion: string;
}

/** Whether a cache shows an apply of this process. @param version the resulting version; `undefined` without an apply */
export function hasSeen(view: CachedView | undefined, version: string | undefined): boolean {
  if (view === undefined || version === undefined) return true;
  return compareResourceVersions(view.object?.metadata.resourceVersion ?? view.cacheVersion, version) >= 0;
}

/** The object's resources in the caches, without resources that were deleted since. */
export function ownedOf({ context, object, state }: Owner): LiveObject[] {
  const owned = context.cache.owned(object.metadata.uid, recordedIds(object));
  return owned.filter((one) => !state.expectations.hasDeleted(one));
}

/** The ids of the stack's resources, as the object's status records them. */
export function recordedIds(object: LiveObject): ReadonlySet<string> {
  return new Set(statusOf(object).stack?.resources?.map(({ id }) => id));
}

interface Owner {
  context: { cache: Pick<KindCache, "owned"> };
  object: LiveObject;
  state: { expectations: Expectations };
}

/** What is not as it was applied, by id. */
export interface Drift {
  /** It exists, but an applied field has another value. */
  edited: string[];
  /** It is gone, or on its way out. */
  missing: string[];
  /** Digests of the edited objects in their present state. */
  contents: string[];
  /** The cache has not seen our own last apply yet; the event that is still to come leads here again. */
  unseen: string[];
}

/**
 * Compares the recorded resources with what the caches show of them.
 *
 * @param applied the version that Kindstack's own last apply left, by id
 * @param view what a cache shows of an id; `undefined` for a type that is not watched
 * @param former see {@link isAsApplied}
 */
export function findDrift(
  records: readonly OwnedRecord[],
  applied: ReadonlyMap<string, string>,
  view: (id: string) => CachedView | undefined,
  former: readonly OwnerReference[] = [],
): Drift {
  const drift: Drift = { edited: [], missing: [], contents: [], unseen: [] };
  for (const { id, fields, ignored } of records) {
    const seen = view(id);
    if (seen === undefined) continue;
    const { object } = seen;
    if (!hasSeen(seen, applied.get(id))) {
      drift.unseen.push(id);
    } else if (object === undefined || object.metadata.deletionTimestamp) {
      drift.missing.push(id);
    } else if (!isAsApplied(object, fields, ignored, former)) {
      drift.edited.push(id);
      drift.contents.push(contentsDigest(object));
    }
  }
  return drift;
}

/** Of all that is neither status nor the server's record of writes. */
function contentsDigest({ status: _, metadata, ...contents }: LiveObject): string {
  const { labels, annotations, ownerReferences, finalizers } = metadata;
  return hash("sha256", JSON.stringify([contents, labels, annotations, ownerReferences, finalizers])).slice(0, 19);
}

/** The inputs that an update has read besides the spec: a change of an input calls for another update. */
export type ProgramReads = Pick<StackRecord, "metadata" | "references">;

/** What of this has changed since, in words. @param view what a cache shows of an id; `undefined` for a type that is not watched */
export function changedReads(
  { metadata, references = [] }: ProgramReads,
  object: LiveObject,
  view: (id: string) => CachedView | undefined,
): string[] {
  const changed =
    metadata === undefined || metadata === metadataDigest(object.metadata) ? [] : ["labels or annotations"];
  for (const { id, version } of references) {
    const seen = view(id);
    if (seen === undefined) continue;
    const now = seen.object?.metadata.resourceVersion;
    // A cache that is behind what was read tells nothing new.
    const isNewer =
      version === undefined ? now !== undefined : compareResourceVersions(now ?? seen.cacheVersion, version) > 0;
    if (isNewer) changed.push(id);
  }
  return changed;
}
