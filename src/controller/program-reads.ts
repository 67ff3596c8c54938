import type { LiveObject } from "../../providers/kubernetes/client";
import type { ReferenceRecord } from "../../stacks/contract/object";
import { metadataDigest } from "../../stacks/contract/references";
import { compareResourceVersions } from "../cache/change";
import type { CachedView } from "./kind-cache";

/** The inputs that an update has read besides the spec: a change of an input calls for another update. */
export interface ProgramReads {
  /** See {@link metadataDigest}; only if the program has looked at labels or annotations. */
  metadata?: string;
  references?: readonly ReferenceRecord[];
}

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
