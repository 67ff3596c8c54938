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
  readonly #queues = new WeakMap<object, Map<string, Waiting<Item, Result>[]>>();

  constructor(options: GroupCommitOptions<Item, Result>) {
    this.#options = options;
  }

  do(item: Item): Promise<Result> {
    const scope = currentFence() ?? this;
    const queues = this.#queues.get(scope) ?? new Map<string, Waiting<Item, Result>[]>();
    this.#queues.set(scope, queues);
    const likeness = this.#options.likeness(item);
    return new Promise((resolve, reject) => {
      const waiting = { item, resolve, reject };
      const queue = queues.get(likeness);
      if (queue !== undefined) {
        queue.push(waiting);
        return;
      }
      const own = [waiting];
      queues.set(likeness, own);
      void this.#drain(own, () => queues.delete(likeness));
    });
  }

  /** @param close called at the very moment when the queue is empty, so that no item is added in vain */
  async #drain(queue: Waiting<Item, Result>[], close: () => void): Promise<void> {
    for (let [first] = queue; first !== undefined; [first] = queue) {
      await this.#commit(queue.splice(0, this.#options.atMost(first.item)));
    }
    close();
  }

  async #commit(group: readonly Waiting<Item, Result>[]): Promise<void> {
    try {
      const result = await this.#options.together(group.map(({ item }) => item));
      for (const { resolve } of group) resolve(result);
    } catch (error) {
      const isForAll = isUnanswered(error) || error instanceof TableUnavailableError;
      if (group.length > 1 && !isForAll) await Promise.all(group.map((one) => this.#commit([one])));
      else for (const { reject } of group) reject(error);
    }
  }
}
