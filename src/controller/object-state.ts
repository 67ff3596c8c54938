import { isDeepStrictEqual } from "node:util";
import type { LiveObject } from "../../providers/kubernetes/client";
import { isObjectOutputs } from "../../providers/kubernetes/object";
import type { NewCondition } from "../../stacks/contract/condition";
import { objectId } from "../../stacks/contract/object";
import type { UpdateResult } from "../automation/engine";
import type { StackResource } from "../automation/event-log";
import { compareResourceVersions } from "../cache/informer";
import type { Pending } from "./blocked";
import type { Attempt } from "./decide";
import { RepairPace } from "./field-conflict";

/** Caches that have not seen a deletion after this long never will: the object is another one of that name. */
const DELETION_MEMORY_MS = 60_000;

/**
 * What this process knows of one object beyond what its caches show: they lag behind its own writes. Nothing here is
 * needed to be right; after a restart it is learned anew.
 */
export class Memory {
  lastAttempt: Attempt | undefined;
  /** How often what a terminal attempt ran into may have gone. */
  reconsidered = 0;
  /** Set by an update, or a destroy, that has to wait for something else to end. */
  pending: Pending | undefined;
  /** Set from outside, for drift that no watch shows. */
  drifted = false;
  /** What the last comparison says of the object's drift being unknown; undefined before the first. */
  driftUnknown: NewCondition | undefined;
  readonly repairs = new RepairPace();
  /** The first that ends is replaced at once; another soon after it has to wait. */
  readonly replacements = new RepairPace(0);
  /** What the kind wrote besides the stack, and when it did so last, by `performance.now()`, which nobody sets. */
  readonly tended = new OwnWrites();
  tendedAt = Number.NEGATIVE_INFINITY;

  /** The versions that our own applies left, by {@link objectId}. */
  #applied: ReadonlyMap<string, string> = new Map();
  /** When we deleted what, by {@link objectId}. */
  readonly #deleted = new Map<string, number>();
  #latest: LiveObject | undefined;
  /** The status that we wrote last: its event may come before the answer. */
  #status: unknown;

  get applied(): ReadonlyMap<string, string> {
    return this.#applied;
  }

  /** Takes in what an update did. */
  learn({ resources, deleted }: Pick<UpdateResult, "resources" | "deleted">): void {
    this.#applied = new Map(resources.flatMap(appliedVersion));
    const now = performance.now();
    for (const [id, time] of this.#deleted) if (now - time > DELETION_MEMORY_MS) this.#deleted.delete(id);
    for (const { outputs } of deleted) if (isObjectOutputs(outputs)) this.#deleted.set(objectId(outputs.manifest), now);
    for (const id of this.#applied.keys()) this.#deleted.delete(id);
  }

  /** Whether we have deleted this object, whatever a cache still shows. */
  hasDeleted(object: LiveObject): boolean {
    return this.#deleted.has(objectId(object));
  }

  /** Notes the object as our own write returned it, without the managed fields, which are the larger part of it. */
  wrote(object: LiveObject): LiveObject {
    const { managedFields: _, ...metadata } = object.metadata;
    this.#latest = { ...object, metadata };
    return this.#latest;
  }

  /** Notes a status that is about to be written. */
  writes(status: unknown): void {
    this.#status = status;
  }

  /** Whether an object has the status that we wrote last. */
  hasOwnStatus({ status }: LiveObject): boolean {
    return isDeepStrictEqual(status, this.#status);
  }

  /** The newer of what the cache shows and what we wrote last. */
  newest(cached: LiveObject): LiveObject {
    const latest = this.#latest;
    if (
      latest?.metadata.uid === cached.metadata.uid &&
      compareResourceVersions(latest.metadata.resourceVersion, cached.metadata.resourceVersion) > 0
    ) {
      return latest;
    }
    this.#latest = undefined;
    return cached;
  }
}

/** The newest states of owned objects that our own writes returned, until the caches show them. */
export class OwnWrites {
  readonly #latest = new Map<string, LiveObject>();

  wrote(object: LiveObject): void {
    this.#latest.set(objectId(object), object);
  }

  /** The newer of what the cache shows and what we wrote last. */
  newest(cached: LiveObject): LiveObject {
    const id = objectId(cached);
    const latest = this.#latest.get(id);
    if (
      latest?.metadata.uid === cached.metadata.uid &&
      compareResourceVersions(latest.metadata.resourceVersion, cached.metadata.resourceVersion) > 0
    ) {
      return latest;
    }
    this.#latest.delete(id);
    return cached;
  }
}

function appliedVersion({ outputs }: StackResource): [string, string][] {
  return isObjectOutputs(outputs) ? [[objectId(outputs.manifest), outputs.resourceVersion]] : [];
}
