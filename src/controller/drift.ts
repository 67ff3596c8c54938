import { hash } from "node:crypto";
import type { LiveObject, OwnerReference } from "../../providers/kubernetes/client";
import { isAsApplied } from "../../providers/kubernetes/ownership";
import type { OwnedRecord } from "../../stacks/contract/object";
import { type CachedView, hasSeen } from "./kind-cache";

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
  former: readonly OwnerReference[],
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
