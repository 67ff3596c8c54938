import { isDeepStrictEqual } from "node:util";
import type { LiveObject } from "../../providers/kubernetes/client";
import { objectId } from "../../stacks/contract/object";
import { compareResourceVersions, withoutManagedFields } from "../cache/change";

/** The newest states of objects that our own writes returned, until the caches show them. */
export class ReadYourWrites {
  /** Made when it is needed: most objects are at rest. */
  #recorded: Map<string, LiveObject> | undefined;
  /** The status that was written last: its event may come before the answer. */
  #status: unknown;
  /** The version that was last {@link shown}. */
  #shown: string | undefined;

  /** Takes in an object as our own write returned it. */
  record(object: LiveObject): LiveObject {
    const latest = withoutManagedFields(object);
    const isShown = this.#shown && compareResourceVersions(latest.metadata.resourceVersion, this.#shown) <= 0;
    if (isShown) return latest;
    this.#recorded ??= new Map();
    this.#recorded.set(objectId(object), latest);
    return latest;
  }

  /** The newer of what a cache shows and what was written last. */
  latest(cached: LiveObject): LiveObject {
    if (this.#recorded === undefined) return cached;
    const latest = this.#recorded.get(objectId(cached));
    const { uid, resourceVersion } = cached.metadata;
    const isSame = latest?.metadata.uid === uid;
    return isSame && compareResourceVersions(latest.metadata.resourceVersion, resourceVersion) > 0 ? latest : cached;
  }

  /** Takes in the object as its cache shows it from now on, for writes of one object: what it has caught up with is dropped. */
  shown(object: LiveObject): void {
    this.#shown = object.metadata.resourceVersion;
    if (this.hasOwnStatus(object)) this.#status = object.status; // the cache has it as well: one of the two is enough
    this.forgetShown([object]);
  }

  /** Drops what a cache that shows these objects has caught up with. */
  forgetShown(objects: readonly LiveObject[]): void {
    if (this.#recorded === undefined) return;
    for (const object of objects) if (this.latest(object) === object) this.#recorded.delete(objectId(object));
    if (this.#recorded.size === 0) this.#recorded = undefined;
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
