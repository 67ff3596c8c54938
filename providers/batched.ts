import type { Fence } from "./fence";

export interface BatchOptions<Item, Result> {
  /** Does all of these or, when it throws, none. @param fence of all of them */
  run(batch: readonly Item[], fence: Fence | undefined): Promise<Result>;
  /** Only items with the same key are in one batch. */
  batchKey(item: Item): string;
  /** How many items may be in a batch with this one. */
  maxSize(item: Item): number;
  /** Whether each item of a batch that failed with this would fail alone as well. */
  isForAll(error: unknown): boolean;
}

interface Waiting<Item, Result> {
  item: Item;
  resolve(result: Result): void;
  reject(error: unknown): void;
}

type Queues<Item, Result> = Map<string, Waiting<Item, Result>[]>;

/**
 * Batches what is asked for at the same time, as databases do with their commits: an item starts at once when none with
 * its key runs, and those that arrive meanwhile are the next batch. A batch that fails is repeated item by item, so that
 * each has a result of its own.
 *
 * @returns does one item; it throws what `run` throws for a batch of this item alone, or for one with an error for all
 */
export function batched<Item, Result>({
  run,
  batchKey,
  maxSize,
  isForAll,
}: BatchOptions<Item, Result>): (item: Item, fence: Fence | undefined) => Promise<Result> {
  /** What waits for running batches, by fence and key: work of different fences does not end together. */
  const queues = new WeakMap<object, Queues<Item, Result>>();

  async function runBatch(batch: readonly Waiting<Item, Result>[], fence: Fence | undefined): Promise<void> {
    try {
      const result = await run(
        batch.map(({ item }) => item),
        fence,
      );
      for (const { resolve } of batch) resolve(result);
    } catch (error) {
      if (batch.length > 1 && !isForAll(error)) await Promise.all(batch.map((one) => runBatch([one], fence)));
      else for (const { reject } of batch) reject(error);
    }
  }

  async function drain(scope: Queues<Item, Result>, key: string, fence: Fence | undefined): Promise<void> {
    const queue = scope.get(key) ?? [];
    for (let [first] = queue; first !== undefined; [first] = queue) {
      await runBatch(queue.splice(0, maxSize(first.item)), fence);
    }
    scope.delete(key); // in the same moment as the queue was seen empty, so that no item is added in vain
  }

  return (item, fence) => {
    const scope: Queues<Item, Result> = queues.get(fence ?? queues) ?? new Map();
    queues.set(fence ?? queues, scope);
    const key = batchKey(item);
    return new Promise((resolve, reject) => {
      const waiting = { item, resolve, reject };
      const queue = scope.get(key);
      if (queue !== undefined) queue.push(waiting);
      else {
        scope.set(key, [waiting]);
        void drain(scope, key, fence);
      }
    });
  };
}
