import type { LiveObject } from "../../providers/kubernetes/client";
import { objectsAmong } from "../../providers/kubernetes/object";
import { objectId } from "../../stacks/contract/object";
import type { UpResult } from "../automation/engine";

/** Caches that have not shown a deletion after this long never will: the object is another one of that name. */
const DELETION_EXPECTED_MS = 60_000;

/** What caches show of an object's resources when they have caught up with its updates; as in kube-controller-manager. */
export class Expectations {
  #applied: ReadonlyMap<string, string> = new Map();
  /** When what was deleted, by {@link objectId}. */
  readonly #deleted = new Map<string, number>();

  /** The versions that our own applies left, by {@link objectId}. */
  get applied(): ReadonlyMap<string, string> {
    return this.#applied;
  }

  /** Takes in what an update did. */
  updated({ resources, deleted }: Pick<UpResult, "resources" | "deleted">): void {
    const applied = objectsAmong(resources);
    this.#applied = new Map(applied.map(({ manifest, resourceVersion }) => [objectId(manifest), resourceVersion]));
    const now = performance.now();
    for (const id of this.#deleted.keys()) if (!this.#isExpected(id)) this.#deleted.delete(id);
    for (const { manifest } of objectsAmong(deleted)) this.#deleted.set(objectId(manifest), now);
    for (const id of this.#applied.keys()) this.#deleted.delete(id);
  }

  /** Whether an update has deleted this object, whatever a cache still shows. */
  hasDeleted(object: LiveObject): boolean {
    return this.#isExpected(objectId(object));
  }

  #isExpected(id: string): boolean {
    return performance.now() - (this.#deleted.get(id) ?? Number.NEGATIVE_INFINITY) <= DELETION_EXPECTED_MS;
  }
}
