import type { ApiError, LiveObject } from "../../providers/kubernetes/client";
import { statusOf } from "../../stacks/contract/kind";
import { compareResourceVersions } from "../cache/change";
import type { Expectations } from "./expectations";

/** What the caches show of a kind's objects and of what has to do with them. */
export interface KindCache {
  object(key: string): LiveObject | undefined;
  /** The last state of an object that was deleted in spite of its finalizer, as one that is being deleted. */
  tombstone(key: string): LiveObject | undefined;
  /** @param recorded ids of what its stack made, see {@link OwnerIndex.owned} */
  owned(uid: string, recorded: ReadonlySet<string>): LiveObject[];
  watched(key: string): LiveObject[];
  /** An owned object by its id (`objectId`); `undefined` when its type is not watched. */
  view(id: string): CachedView | undefined;
  /** Why no cache shows the owned object of this id as it is: the API server does not serve its type. */
  unserved(id: string): ApiError | undefined;
  /** What is referred to by its id; `undefined` when its type is not watched. */
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

/** Whether a cache has seen an apply of ours. @param version what it left; `undefined` when this process made none */
export function hasSeen(view: CachedView | undefined, version: string | undefined): boolean {
  if (view === undefined || version === undefined) return true;
  return compareResourceVersions(view.object?.metadata.resourceVersion ?? view.cacheVersion, version) >= 0;
}

/** What the caches show of what the object owns, without what was deleted since. */
export function ownedOf({ context, object, state }: Owner): LiveObject[] {
  const owned = context.cache.owned(object.metadata.uid, recordedIds(object));
  return owned.filter((one) => !state.expectations.hasDeleted(one));
}

/** What an object's status records of what its stack made, by id. */
export function recordedIds(object: LiveObject): ReadonlySet<string> {
  return new Set(statusOf(object).stack?.resources?.map(({ id }) => id));
}

interface Owner {
  context: { cache: Pick<KindCache, "owned"> };
  object: LiveObject;
  state: { expectations: Expectations };
}
