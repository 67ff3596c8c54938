import type { ApiError, LiveObject } from "../../providers/kubernetes/client";
import { statusOf } from "../../stacks/contract/kind";
import { compareResourceVersions } from "../cache/change";
import type { Expectations } from "./expectations";

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
