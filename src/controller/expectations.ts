import type { LiveObject } from "../../providers/kubernetes/client";
import { objectsAmong } from "../../providers/kubernetes/object";
import { objectId } from "../../stacks/contract/object";
import type { UpResult } from "../automation/engine";

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
