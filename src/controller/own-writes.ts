import { isDeepStrictEqual } from "node:util";
import type { LiveObject } from "../../providers/kubernetes/client";
import { objectsAmong } from "../../providers/kubernetes/object";
import { objectId } from "../../stacks/contract/object";
import type { UpResult } from "../automation/engine";
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

/** Caches that have not shown a deletion after this long will show the object's end: something keeps it. */
const DELETION_EXPECTED_MS = 60_000;

const NONE: ReadonlyMap<string, string> = new Map();

/** The object's resources as caches will show them after its last update; as in kube-controller-manager. */
export class Expectations {
  #applied = NONE;
  /** The time of each deletion, by UID: a successor of the same name is another object. Allocated on demand. */
  #deleted: Map<string, number> | undefined;

  /** The versions that our own applies left, by {@link objectId}. */
  get applied(): ReadonlyMap<string, string> {
    return this.#applied;
  }

  /** Takes in what an update did. */
  updated({ resources, deleted }: Pick<UpResult, "resources" | "deleted">): void {
    const applied = objectsAmong(resources);
    const versions = applied.map(({ manifest, resourceVersion }) => [objectId(manifest), resourceVersion] as const);
    this.#applied = versions.length > 0 ? new Map(versions) : NONE;
    const now = performance.now();
    const expected = [...(this.#deleted ?? [])].filter(([uid]) => this.#isExpected(uid));
    const kept = new Set(applied.map(({ uid }) => uid));
    const gone = objectsAmong(deleted).map(({ uid }) => [uid, now] as const);
    const all = [...expected, ...gone].filter(([uid]) => !kept.has(uid));
    this.#deleted = all.length > 0 ? new Map(all) : undefined;
  }

  /** Whether an update has deleted this object, whatever a cache still shows. */
  hasDeleted(object: LiveObject): boolean {
    return this.#isExpected(object.metadata.uid);
  }

  #isExpected(uid: string): boolean {
    return performance.now() - (this.#deleted?.get(uid) ?? Number.NEGATIVE_INFINITY) <= DELETION_EXPECTED_MS;
  }
}
