import { currentFence, type Fence } from "../fence";
import { isUnanswered } from "./errors";

export interface GroupCommitOptions<Item, Result> {
  /** Does all of these or, when it throws, none. */
  together(items: readonly Item[]): Promise<Result>;
  /** Only items of which this is the same are done together. */
  likeness(item: Item): string;
  /** How many like this one may be done together. */
  atMost(item: Item): number;
}

interface Waiting<Item, Result> {
  item: Item;
  resolve(result: Result): void;
  reject(error: unknown): void;
}

/**
 * Does in one transaction what is wanted at the same time, as databases do with their commits: an item goes at once when
 * none like it is under way, and those that come meanwhile are the next group. A group that is refused is done again item
 * by item, so that each has a result of its own.
 */
export class GroupCommit<Item, Result> {
  readonly #options: GroupCommitOptions<Item, Result>;
  /** What waits for groups that are under way. Work of different fences does not end together. */
  readonly #lines = new Map<Fence | undefined, Map<string, Waiting<Item, Result>[]>>();

  constructor(options: GroupCommitOptions<Item, Result>) {
    this.#options = options;
  }

  do(item: Item): Promise<Result> {
    return new Promise((resolve, reject) => {
      const fence = currentFence();
      const lines = this.#lines.get(fence) ?? new Map<string, Waiting<Item, Result>[]>();
      this.#lines.set(fence, lines);
      const likeness = this.#options.likeness(item);
      const line = lines.get(likeness);
      if (line !== undefined) {
        line.push({ item, resolve, reject });
        return;
      }
      lines.set(likeness, [{ item, resolve, reject }]);
      void this.#workOff(fence, likeness);
    });
  }

  async #workOff(fence: Fence | undefined, likeness: string): Promise<void> {
    const lines = this.#lines.get(fence);
    const line = lines?.get(likeness) ?? [];
    for (let [first] = line; first !== undefined; [first] = line) {
      await this.#settle(line.splice(0, this.#options.atMost(first.item)));
    }
    lines?.delete(likeness);
    if (lines?.size === 0) this.#lines.delete(fence);
  }

  async #settle(group: readonly Waiting<Item, Result>[]): Promise<void> {
    try {
      const result = await this.#options.together(group.map(({ item }) => item));
      for (const { resolve } of group) resolve(result);
    } catch (error) {
      if (group.length > 1 && !isUnanswered(error)) await Promise.all(group.map((one) => this.#settle([one])));
      else for (const { reject } of group) reject(error);
    }
  }
}
