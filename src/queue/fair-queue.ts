import { type Item, idOf } from "./item";

interface Entry<T> {
  item: T;
  /** By `performance.now()`. */
  since: number;
}

/**
 * A queue in which groups take turns: within a group the oldest item is first, but a group with a thousand items gets no
 * more turns than one with a single item.
 */
export class FairQueue<T extends Item> {
  /** Groups in the order of their turns; of each its items, oldest first. */
  readonly #groups = new Map<string, Map<string, Entry<T>>>();
  readonly #groupOf: (item: T) => string;
  #size = 0;

  constructor(groupOf: (item: T) => string) {
    this.#groupOf = groupOf;
  }

  get size(): number {
    return this.#size;
  }

  has(item: T): boolean {
    return this.#groups.get(this.#groupOf(item))?.has(idOf(item)) ?? false;
  }

  add(item: T): void {
    const group = this.#groupOf(item);
    const entries = this.#groups.get(group) ?? new Map();
    this.#groups.set(group, entries);
    if (!entries.has(idOf(item))) this.#size++;
    entries.set(idOf(item), { item, since: performance.now() });
  }

  /** Takes the next item; its group's next turn follows those of all others. */
  take(): Entry<T> | undefined {
    const [turn] = this.#groups;
    if (turn === undefined) return undefined;
    const [group, entries] = turn;
    this.#groups.delete(group);
    const [first] = entries.values();
    if (first === undefined) return this.take();
    entries.delete(idOf(first.item));
    this.#size--;
    if (entries.size > 0) this.#groups.set(group, entries);
    return first;
  }

  clear(): void {
    this.#groups.clear();
    this.#size = 0;
  }
}
