import { type BatchOptions, batched } from "../batched";
import type { Fence } from "../fence";
import { isUnanswered } from "./errors";
import { parseTableName } from "./identifier";
import type { Connection } from "./pool";
import { withOwnershipRecords } from "./records";
import { keyOf, type RowInputs } from "./row-inputs";
import { lockTimeoutMs, TableUnavailableError, withTable } from "./table-lock";

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
