/**
 * A line in which groups take turns: whoever comes first within a group is first, but a group with a thousand keys gets
 * no more turns than one with a single key.
 */
export class FairLine {
  /** Groups in the order of their turns; of each its keys, oldest first, and since when (`performance.now()`). */
  readonly #groups = new Map<string, Map<string, number>>();
  readonly #groupOf: (key: string) => string;
  #size = 0;

  constructor(groupOf: (key: string) => string) {
    this.#groupOf = groupOf;
  }

  get size(): number {
    return this.#size;
  }

  has(key: string): boolean {
    return this.#groups.get(this.#groupOf(key))?.has(key) ?? false;
  }

  add(key: string): void {
    const group = this.#groupOf(key);
    let keys = this.#groups.get(group);
    if (keys === undefined) {
      keys = new Map();
      this.#groups.set(group, keys);
    }
    if (!keys.has(key)) this.#size++;
    keys.set(key, performance.now());
  }

  /** Takes the next key; its group's next turn comes after all the others'. */
  take(): { key: string; since: number } | undefined {
    const [turn] = this.#groups;
    if (turn === undefined) return undefined;
    const [group, keys] = turn;
    this.#groups.delete(group);
    const [first] = keys;
    if (first === undefined) return this.take();
    const [key, since] = first;
    keys.delete(key);
    this.#size--;
    if (keys.size > 0) this.#groups.set(group, keys);
    return { key, since };
  }

  clear(): void {
    this.#groups.clear();
    this.#size = 0;
  }
}
