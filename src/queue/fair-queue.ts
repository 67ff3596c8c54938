import { exponentialBackoff } from "./backoff";

/** What a queue holds. Two items of one id are the same. */
export interface Item {
  readonly id: string;
}

interface Entry<T> {
  item: T;
  /** By `performance.now()`. */
  since: number;
}

/**
 * A queue that is fair between keys: of one key the oldest item is first, but a key with a thousand items is served no more
 * often than one with a single item.
 */
export class FairQueue<T extends Item> {
  /** By fairness key, the next one first: its items, oldest first. */
  readonly #queues = new Map<string, Map<string, Entry<T>>>();
  /** The fairness keys of the items, by id. */
  readonly #keys = new Map<string, string>();

  constructor(private readonly fairnessKeyOf: (item: T) => string) {}

  get size(): number {
    return this.#keys.size;
  }

  has(item: T): boolean {
    return this.#keys.has(item.id);
  }

  /** Adds an item, or moves it to another key. */
  add(item: T, key = this.fairnessKeyOf(item)): void {
    if (this.#keys.get(item.id) === key) return;
    this.delete(item);
    const entries = this.#queues.get(key) ?? new Map();
    this.#queues.set(key, entries);
    this.#keys.set(item.id, key);
    entries.set(item.id, { item, since: performance.now() });
  }

  /** Takes the next item. The key's next item follows one item of each other key. */
  take(): Entry<T> | undefined {
    const [next] = this.#queues;
    if (next === undefined) return undefined;
    const [key, entries] = next;
    this.#queues.delete(key);
    const [first] = entries.values();
    if (first === undefined) return this.take();
    entries.delete(first.item.id);
    this.#keys.delete(first.item.id);
    if (entries.size > 0) this.#queues.set(key, entries);
    return first;
  }

  delete(item: T): void {
    const key = this.#keys.get(item.id);
    if (key === undefined) return;
    this.#keys.delete(item.id);
    const entries = this.#queues.get(key);
    entries?.delete(item.id);
    if (entries?.size === 0) this.#queues.delete(key);
  }

  clear(): void {
    this.#queues.clear();
    this.#keys.clear();
  }
}

/** An item to try again, and when. */
export interface Retry<T> {
  item: T;
  afterMs: number;
}

interface Outage<T> {
  /** The waiting items by id, the longest waiting first. */
  waiting: Map<string, T>;
  /** The items that are tried in place of the waiting ones. */
  probes: Map<string, T>;
  /** How often a probe has failed in a row. */
  failures: number;
}

const BASE_MS = 1_000;
/** A dependency is probed at least this often: what waits is tried soon after its return. */
const CAP_MS = 5_000;
/** With many dependencies that are away, all probes together are at most ten a second. */
const CAP_PER_OUTAGE_MS = 100;
/** How many more are tried for each that succeeds: a dependency that is back gets its load in a few rounds. */
const TRIED_AFTER_SUCCESS = 2;

/**
 * The back-off of items with the same missing dependency, such as a table, a database or a plugin. One item is tried for all,
 * later each time; when the item succeeds, the others follow.
 *
 * Keeps no time and calls nothing: each call returns what is to be tried.
 */
export class Outages<T extends Item> {
  readonly #outages = new Map<string, Outage<T>>();
  /** The dependency that an item waits for, by the item's id. */
  readonly #dependencies = new Map<string, string>();

  /** An item has failed because of a dependency: it waits for it. */
  failed(item: T, dependency: string): Retry<T>[] {
    const changed = this.#dependencies.get(item.id) === dependency ? [] : this.abandoned(item);
    const outage = this.#outages.get(dependency) ?? { waiting: new Map(), probes: new Map(), failures: 0 };
    this.#outages.set(dependency, outage);
    this.#dependencies.set(item.id, dependency);
    outage.probes.delete(item.id);
    outage.waiting.delete(item.id); // to the end of the order
    outage.waiting.set(item.id, item);
    if (outage.probes.size > 0) return changed;
    return [...changed, ...this.#probe(outage, outage.failures++)];
  }

  /** An item has succeeded: the dependency is back, and the waiting items are tried. */
  succeeded(item: T): Retry<T>[] {
    const outage = this.#remove(item);
    if (outage === undefined) return [];
    outage.failures = 0;
    return take(outage, TRIED_AFTER_SUCCESS, 0);
  }

  /** An item does not wait any more: it is gone, or has failed for another reason, which says nothing of the dependency. */
  abandoned(item: T): Retry<T>[] {
    const outage = this.#remove(item);
    if (outage === undefined || outage.probes.size > 0) return [];
    return this.#probe(outage, Math.max(0, outage.failures - 1));
  }

  /** The next try, if anything waits. */
  #probe(outage: Outage<T>, failures: number): Retry<T>[] {
    const capMs = Math.max(CAP_MS, this.#outages.size * CAP_PER_OUTAGE_MS);
    return take(outage, 1, exponentialBackoff(failures, { baseMs: BASE_MS, capMs }));
  }

  #remove({ id }: T): Outage<T> | undefined {
    const dependency = this.#dependencies.get(id);
    const outage = dependency === undefined ? undefined : this.#outages.get(dependency);
    if (dependency === undefined || outage === undefined) return undefined;
    this.#dependencies.delete(id);
    outage.waiting.delete(id);
    outage.probes.delete(id);
    if (outage.waiting.size + outage.probes.size === 0) this.#outages.delete(dependency);
    return outage;
  }
}

function take<T extends Item>({ waiting, probes }: Outage<T>, count: number, afterMs: number): Retry<T>[] {
  const taken = [...waiting.values()].slice(0, count);
  for (const item of taken) {
    waiting.delete(item.id);
    probes.set(item.id, item);
  }
  return taken.map((item) => ({ item, afterMs }));
}
