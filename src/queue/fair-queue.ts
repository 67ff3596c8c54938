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
  #size = 0;

  constructor(private readonly fairnessKeyOf: (item: T) => string) {}

  get size(): number {
    return this.#size;
  }

  has(item: T): boolean {
    return this.#queues.get(this.fairnessKeyOf(item))?.has(item.id) ?? false;
  }

  add(item: T): void {
    const key = this.fairnessKeyOf(item);
    const entries = this.#queues.get(key) ?? new Map();
    this.#queues.set(key, entries);
    if (!entries.has(item.id)) this.#size++;
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
    this.#size--;
    if (entries.size > 0) this.#queues.set(key, entries);
    return first;
  }

  delete(item: T): void {
    const key = this.fairnessKeyOf(item);
    const entries = this.#queues.get(key);
    if (entries?.delete(item.id)) this.#size--;
    if (entries?.size === 0) this.#queues.delete(key);
  }

  clear(): void {
    this.#queues.clear();
    this.#size = 0;
  }
}
