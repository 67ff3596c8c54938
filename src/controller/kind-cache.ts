import type { ApiError, LiveObject } from "../../providers/kubernetes/client";
import { statusOf } from "../../stacks/contract/kind";
import type { StackRecord } from "../../stacks/contract/object";
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
export function ownedOf({ context, object, state }: OwnedQuery): LiveObject[] {
  const owned = context.cache.owned(object.metadata.uid, recordedIds(object));
  return owned.filter((one) => !state.expectations.hasDeleted(one));
}

/** The ids of the stack's resources, as the object's status records them. */
export function recordedIds(object: LiveObject): ReadonlySet<string> {
  return new Set(statusOf(object).stack?.resources?.map(({ id }) => id));
}

interface OwnedQuery {
  context: { cache: Pick<KindCache, "owned"> };
  object: LiveObject;
  state: { expectations: Expectations };
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
