import { escapeIdentifier } from "pg";
import { batched } from "../batched";
import { RetryableError } from "../errors";
import { columnsOf, compareRows, isUnreadable } from "./comparison";
import { sqlStateOf } from "./errors";
import { formatTableName, quoteTableName } from "./identifier";
import { findRecord, releaseRow } from "./ownership";
import { placeOf, recordedPlaces, removeRecordedTable, tableId } from "./placement";
import type { Connection } from "./pool";
import { inTransaction, isForAll, MOST_ROWS } from "./row-batch";
import { keyOf, type RowOutputs } from "./row-inputs";
import { isThere, suppressedWrite } from "./suppressed-write";
import { mayHideRows, type Table } from "./tables";

/** Deletes rows of this table, many in one transaction. */
export const deleteRow = batched<RowOutputs, void>({
  isForAll,
  run: (batch) =>
    inTransaction(batch, async (connection, all) => {
      for (const outs of all) await deleteWithRecord(connection, outs);
    }),
  batchKey: ({ table }) => table,
  maxSize: () => MOST_ROWS,
});

/**
 * Deletes the row together with the record that it is ours. Without any record, as after the restore of a backup that
 * left out the records, the row is deleted if it is just as we wrote it.
 *
 * @throws RetryableError `WriteSuppressed`, `RowHidden`, with the record kept, when the row may still be there
 */
async function deleteWithRecord(connection: Connection, outs: RowOutputs): Promise<void> {
  const { incarnation } = outs;
  const recorded = (await recordedPlaces(connection, [incarnation], { lock: true })).get(incarnation);
  if (recorded === undefined) return deleteUnrecorded(connection, outs);
  await releaseRow(connection, outs);
  if (recorded.oid === undefined) return removeRecordedTable(connection, recorded.tableId); // it was dropped, with the row
  const { table, replaced } = await placeOf(connection, outs, [], recorded);
  if (table !== undefined) await deleteFrom(connection, table, outs);
  // A copy of the row would be left behind.
  if (replaced !== undefined && (await isUnmanaged(connection, replaced.by, outs))) throw replaced.error;
}

async function isUnmanaged(connection: Connection, table: Table, row: RowOutputs): Promise<boolean> {
  if (!(await isThere(connection, table, row))) return false;
  const id = await tableId(connection, table);
  return id === undefined || (await findRecord(connection, id, row)) === undefined;
}

async function deleteUnrecorded(connection: Connection, outs: RowOutputs): Promise<void> {
  const { table } = await placeOf(connection, outs, columnsOf(outs), undefined);
  if (table === undefined) return;
  const id = await tableId(connection, table);
  if (id !== undefined && (await findRecord(connection, id, outs)) !== undefined) return; // another owner's
  if (await isAsWritten(connection, table, outs)) await deleteFrom(connection, table, outs);
}

async function isAsWritten(connection: Connection, table: Table, outs: RowOutputs): Promise<boolean> {
  if (columnsOf(outs).some((name) => table.columns[name] === undefined)) return false;
  await connection.query("SAVEPOINT comparison");
  try {
    return (await compareRows(connection, table, [outs])).length === 0;
  } catch (error) {
    if (!isUnreadable(sqlStateOf(error))) throw error;
    await connection.query("ROLLBACK TO SAVEPOINT comparison");
    return false;
  }
}

/** A deletion that deleted nothing is none, unless there is nothing. */
async function deleteFrom(connection: Connection, table: Table, outs: RowOutputs): Promise<void> {
  const { column, value } = keyOf(outs);
  const { rowCount } = await connection.query(
    `DELETE FROM ${quoteTableName(table)} WHERE ${escapeIdentifier(column)} = $1`,
    [value],
  );
  if (await isThere(connection, table, outs)) throw await suppressedWrite(connection, table, outs, "delete");
  if (rowCount === 0 && (await mayHideRows(connection, table.oid))) {
    throw new RetryableError(
      "RowHidden",
      `row ${JSON.stringify(value)} of table ${formatTableName(table)} was not deleted: it is gone, or row security hides it. ` +
        "Give Kindstack's role a policy with USING (true) for SELECT, or set kindstack.dev/deletion-policy: Orphan",
    );
  }
}
