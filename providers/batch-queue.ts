import { currentFence } from "./fence";

export interface BatchQueueOptions<Item, Result> {
  /** Does all of these or, when it throws, none. */
  together(items: readonly Item[]): Promise<Result>;
  /** Only items with the same value are done together. */
  likeness(item: Item): string;
  /** How many like this one may be done together; by default any number. */
  atMost?(item: Item): number;
  /** Whether each item of a batch that failed with this would fail alone as well. */
  isForAll(error: unknown): boolean;
}

interface Waiting<Item, Result> {
  item: Item;
  resolve(result: Result): void;
  reject(error: unknown): void;
}

/**
 * Does together what is wanted at the same time, as databases do with their commits: an item goes at once when none like it
 * is under way, and those that come meanwhile are the next batch. A batch that fails is done again item by item, so that
 * each has a result of its own.
 */
export class BatchQueue<Item, Result> {
  readonly #options: BatchQueueOptions<Item, Result>;
  /** What waits for batches that are under way, by fence and likeness: work of different fences does not end together. */
  readonly #queues = new WeakMap<object, Map<string, Waiting<Item, Result>[]>>();

  constructor(options: BatchQueueOptions<Item, Result>) {
    this.#options = options;
  }

  /** @throws what `together` throws of a batch with this item alone, or of one whose error is for all */
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
      await this.#run(queue.splice(0, this.#options.atMost?.(first.item) ?? queue.length));
    }
    close();
  }

  async #run(batch: readonly Waiting<Item, Result>[]): Promise<void> {
    try {
      const result = await this.#options.together(batch.map(({ item }) => item));
      for (const { resolve } of batch) resolve(result);
    } catch (error) {
      if (batch.length > 1 && !this.#options.isForAll(error)) await Promise.all(batch.map((one) => this.#run([one])));
      else for (const { reject } of batch) reject(error);
    }
  }
}
