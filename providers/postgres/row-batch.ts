import { commonFence, type Fence } from "../fence";
import { isUnanswered } from "./errors";
import { parseTableName } from "./identifier";
import type { Connection } from "./pool";
import { keyOf, type RowInputs } from "./row-inputs";
import { lockTimeoutMs, TableUnavailableError, withOwnershipRecords, withTable } from "./table-lock";

/** Maximum number of rows in a batch; larger ones are not faster. */
export const MOST_ROWS = 64;

/** Batches what is asked for rows; see {@link batched}. */
export function batchedRows<Row, Result>(
  options: Pick<BatchOptions<Row, Result>, "run" | "batchKey"> & Partial<BatchOptions<Row, Result>>,
): (row: Row, fence: Fence | undefined) => Promise<Result> {
  const isForAll = (error: unknown) => isUnanswered(error) || error instanceof TableUnavailableError;
  return batched({ isForAll, maxSize: () => MOST_ROWS, ...options });
}

/**
 * Runs a transaction that writes these rows of one table. They are in the same order everywhere, so that of two batches
 * that want the same rows none waits for the other in a circle.
 *
 * @param beforeRecords looks at each row in a database that has no records yet, and throws where none are to be created
 */
export function inTransaction<Row extends RowInputs, T>(
  batch: readonly Row[],
  work: (connection: Connection, rows: readonly [Row, ...Row[]]) => Promise<T>,
  beforeRecords: (connection: Connection, row: Row) => Promise<void>,
  fence: Fence | undefined,
): Promise<T> {
  const all = [...batch].sort((a, b) => (keyOf(a).value < keyOf(b).value ? -1 : 1)) as [Row, ...Row[]];
  const [first] = all;
  const table = parseTableName(first.table, "table");
  const lookFirst = async (connection: Connection) => {
    for (const row of all) await beforeRecords(connection, row);
  };
  return withTable(
    table,
    (run) => withOwnershipRecords(fence, run, lookFirst, lockTimeoutMs(table)),
    (connection) => work(connection, all),
    all.length === 1 ? keyOf(first) : undefined,
  );
}

interface BatchOptions<Item, Result> {
  /** Does all of these or, when it throws, none. @param fence that all of them have */
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
  fence: Fence | undefined;
  resolve(result: Result): void;
  reject(error: unknown): void;
}

/**
 * Batches what is asked for at the same time, as databases do with their commits: an item starts at once when none with
 * its key runs, and those that arrive meanwhile are the next batch. A batch that fails is repeated item by item, so that
 * each has a result of its own; also one that failed because the fence of an item has ended.
 *
 * @returns does one item; it throws what `run` throws for a batch of this item alone, or for one with an error for all
 */
export function batched<Item, Result>({
  run,
  batchKey,
  maxSize,
  isForAll,
}: BatchOptions<Item, Result>): (item: Item, fence: Fence | undefined) => Promise<Result> {
  /** What waits for a running batch, by its key. */
  const queues = new Map<string, Waiting<Item, Result>[]>();

  async function runBatch(batch: readonly Waiting<Item, Result>[]): Promise<void> {
    const fences = batch.map(({ fence }) => fence);
    try {
      const items = batch.map(({ item }) => item);
      const result = await run(items, commonFence(fences));
      for (const { resolve } of batch) resolve(result);
    } catch (error) {
      const isOfOne = !isForAll(error) || fences.some((fence) => fence?.signal.aborted);
      if (batch.length > 1 && isOfOne) await Promise.all(batch.map((one) => runBatch([one])));
      else for (const { reject } of batch) reject(error);
    }
  }

  async function drain(key: string, queue: Waiting<Item, Result>[]): Promise<void> {
    for (let [first] = queue; first !== undefined; [first] = queue) {
      await runBatch(queue.splice(0, maxSize(first.item)));
    }
    queues.delete(key); // in the same moment as the queue was seen empty, so that no item is added in vain
  }

  return (item, fence) => {
    const key = batchKey(item);
    return new Promise((resolve, reject) => {
      const waiting = { item, fence, resolve, reject };
      const queue = queues.get(key);
      if (queue !== undefined) queue.push(waiting);
      else {
        const started = [waiting];
        queues.set(key, started);
        void drain(key, started);
      }
    });
  };
}
