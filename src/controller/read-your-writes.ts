import { isDeepStrictEqual } from "node:util";
import type { LiveObject } from "../../providers/kubernetes/client";
import { objectId } from "../../stacks/contract/object";
import { compareResourceVersions, withoutManagedFields } from "../cache/change";

/** The newest states of objects that our own writes returned, until the caches show them. */
export class ReadYourWrites {
  readonly #recorded = new Map<string, LiveObject>();
  /** The status that was written last: its event may come before the answer. */
  #status: unknown;

  /** Takes in an object as our own write returned it. */
  record(object: LiveObject): LiveObject {
    const latest = withoutManagedFields(object);
    this.#recorded.set(objectId(object), latest);
    return latest;
  }

  /** The newer of what a cache shows and what was written last. */
  latest(cached: LiveObject): LiveObject {
    const id = objectId(cached);
    const latest = this.#recorded.get(id);
    const { uid, resourceVersion } = cached.metadata;
    const isSame = latest?.metadata.uid === uid;
    if (isSame && compareResourceVersions(latest.metadata.resourceVersion, resourceVersion) > 0) return latest;
    this.#recorded.delete(id);
    return cached;
  }

  /** Writes a status, and takes in the object as the write returned it. */
  async status(status: unknown, write: () => Promise<LiveObject>): Promise<LiveObject> {
    this.#status = status;
    return this.record(await write());
  }

  /** Whether an object has the status that was written last. */
  hasOwnStatus({ status }: LiveObject): boolean {
    return status !== undefined && isDeepStrictEqual(status, this.#status);
  }
}
