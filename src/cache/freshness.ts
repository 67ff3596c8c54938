import type { LiveObject } from "../../providers/kubernetes/client";
import { compareResourceVersions } from "./change";

/**
 * Whether the spec that a cache shows is the object's: an update to an earlier one deletes what came with a later one, and
 * a destroy must not be of a successor. Caches are behind for long where a watch has gone silent, and another replica has
 * worked on the object since.
 */
export function isFresh(cached: LiveObject, live: LiveObject | undefined): boolean {
  const [before, now] = [cached.metadata, live?.metadata];
  if (now?.uid !== before.uid) return false;
  if (before.deletionTimestamp !== undefined) return now.deletionTimestamp !== undefined;
  return now.generation === before.generation && now.deletionTimestamp === undefined;
}

/** A write that lies further back proves nothing. */
const MAX_AGE_MS = 5_000;

interface Write {
  /** The version of the object that it made. */
  version: string;
  /** When it was sent, by `performance.now()`. */
  sentAt: number;
}

/**
 * Proves without a request that a cache is up to date. A watch shows the changes of a type in order: once it shows a write of
 * this operator, it has shown all earlier changes.
 */
export class ProvenFreshness {
  #proof: Write | undefined;
  /** A later write, which the cache has yet to show. */
  #next: Write | undefined;
  #countsFrom = Number.NEGATIVE_INFINITY;

  /** @param cache a cache of objects of one type, all of them */
  constructor(private readonly cache: { readonly resourceVersion: string }) {}

  /** Takes in a write to an object of the type, which has changed it. */
  wrote(write: Write): void {
    if (this.#next !== undefined && this.#isShown(this.#next)) {
      this.#proof = this.#next;
      this.#next = undefined;
    }
    if (write.sentAt >= this.#countsFrom) this.#next ??= write;
  }

  /** Only later writes count: what another replica did until now may be unknown here. */
  reset(): void {
    this.#countsFrom = performance.now();
    this.#proof = undefined;
    this.#next = undefined;
  }

  /** Whether the cache shows all that was there a moment ago, and since the last reset at least. */
  holds(): boolean {
    const now = performance.now();
    const isProof = (write: Write | undefined) =>
      write !== undefined && now - write.sentAt <= MAX_AGE_MS && this.#isShown(write);
    return isProof(this.#next) || isProof(this.#proof);
  }

  /** A cache can go back in time, when it is filled again by another API server. */
  #isShown({ version }: Write): boolean {
    return compareResourceVersions(this.cache.resourceVersion, version) >= 0;
  }
}
