import { currentFence } from "../fence";
import { isUnanswered } from "./errors";
import { TableUnavailableError } from "./table-lock";

export interface GroupCommitOptions<Item, Result> {
  /** Does all of these or, when it throws, none. */
  together(items: readonly Item[]): Promise<Result>;
  /** Only items with the same value are done together. */
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
  /** What waits for groups that are under way, by fence and likeness: work of different fences does not end together. */
  readonly #lines = new WeakMap<object, Map<string, Waiting<Item, Result>[]>>();

  constructor(options: GroupCommitOptions<Item, Result>) {
    this.#options = options;
  }

  do(item: Item): Promise<Result> {
    const scope = currentFence() ?? this;
    const lines = this.#lines.get(scope) ?? new Map<string, Waiting<Item, Result>[]>();
    this.#lines.set(scope, lines);
    const likeness = this.#options.likeness(item);
    return new Promise((resolve, reject) => {
      const waiting = { item, resolve, reject };
      const line = lines.get(likeness);
      if (line !== undefined) {
        line.push(waiting);
        return;
      }
      const own = [waiting];
      lines.set(likeness, own);
      void this.#workOff(own, () => lines.delete(likeness));
    });
  }

  /** @param close called at the very moment when the line is empty, so that no item is added in vain */
  async #workOff(line: Waiting<Item, Result>[], close: () => void): Promise<void> {
    for (let [first] = line; first !== undefined; [first] = line) {
      await this.#settle(line.splice(0, this.#options.atMost(first.item)));
    }
    close();
  }

  async #settle(group: readonly Waiting<Item, Result>[]): Promise<void> {
    try {
      const result = await this.#options.together(group.map(({ item }) => item));
      for (const { resolve } of group) resolve(result);
    } catch (error) {
      const isForAll = isUnanswered(error) || error instanceof TableUnavailableError;
      if (group.length > 1 && !isForAll) await Promise.all(group.map((one) => this.#settle([one])));
      else for (const { reject } of group) reject(error);
    }
  }
}
