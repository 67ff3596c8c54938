import type { LiveObject } from "../../providers/kubernetes/client";

/** What the caches show of one owned object. */
export interface OwnedView {
  object: LiveObject | undefined;
  /** The newest version that the cache of its type has seen. */
  cacheVersion: string;
}
