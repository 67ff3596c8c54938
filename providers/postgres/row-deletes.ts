import { escapeIdentifier } from "pg";
import { RetryableError } from "../errors";
import type { CallContext, Hold } from "../provider";
import { columnsOf, compareRows, isUnreadable } from "./comparison";
import { sqlStateOf } from "./errors";
import { formatTableName, parseTableName, quoteTableName } from "./identifier";
import { findRecord, releaseRow } from "./ownership";
import { placeOf, recordedPlaces, removeRecordedTable } from "./placement";
import { type Connection, withReadTransaction } from "./pool";
import { absenceUnknown, isThere, suppressedWrite } from "./row-absence";
import { batchedRows, inTransaction } from "./row-batch";
import { keyOf, type RowOutputs } from "./row-inputs";
import { outdatedRow, readColumns } from "./row-observation";
import { hasRecords, withTable } from "./table-lock";
import { findTable, mayHideRows, type Table } from "./tables";

interface HeldDeletion extends RowOutputs {
  hold?: Hold | undefined;
}

export function deleteRow(outs: RowOutputs, context: CallContext): Promise<void> {
  return deleteBatched({ ...outs, hold: context?.hold }, context?.fence);
}

const deleteBatched = batchedRows<HeldDeletion, void>({
  run: (batch, fence) =>
    inTransaction(
      batch,
      async (connection, all) => {
        if (all.length > 1 && (await deleteTogether(connection, all))) return;
        for (const outs of all) await deleteWithRecord(connection, outs);
      },
      async (connection, outs) => void (await tableWithoutRecords(connection, outs)),
      fence,
    ),
  batchKey: ({ table }) => table,
});

/**
 * Deletes rows that are all recorded where the name of their table leads, by as many statements as one of them takes.
 *
 * @returns false, with nothing done, where one of them is another case: then each is deleted by itself, which tells why
 */
async function deleteTogether(
  connection: Connection,
  all: readonly [HeldDeletion, ...HeldDeletion[]],
): Promise<boolean> {
  const [first] = all;
  const { column } = keyOf(first);
  if (all.some((outs) => outs.hold !== undefined || keyOf(outs).column !== column)) return false;
  const incarnations = all.map(({ incarnation }) => incarnation);
  const [places, table] = await Promise.all([
    recordedPlaces(connection, incarnations, { lock: true }),
    findTable(connection, parseTableName(first.table, "table")),
  ]);
  const isRecorded = ({ incarnation }: RowOutputs) => places.get(incarnation)?.oid === table?.oid;
  if (table === undefined || !all.every(isRecorded)) return false;
  const keys = all.map((outs) => keyOf(outs).value);
  const [name, key] = [quoteTableName(table), escapeIdentifier(column)];
  await connection.query("SAVEPOINT together");
  const [, , deleted, left] = await Promise.all([
    connection.query(`SELECT FROM ${name} WHERE ${key} = ANY($1) ORDER BY ${key}::text COLLATE "C" FOR UPDATE`, [keys]),
    connection.query("DELETE FROM kindstack_ownership.records WHERE incarnation = ANY($1)", [incarnations]),
    connection.query(`DELETE FROM ${name} WHERE ${key} = ANY($1)`, [keys]),
    connection.query(`SELECT FROM ${name} WHERE ${key} = ANY($1) LIMIT 1`, [keys]),
  ]);
  if (deleted.rowCount === all.length && left.rowCount === 0) return true;
  await connection.query("ROLLBACK TO SAVEPOINT together");
  return false;
}

/**
 * Deletes the row together with the record that it is ours. Without a record of the row, as after the restore of a backup that
 * left out the records, the row is deleted if it is just as we wrote it.
 *
 * @throws RetryableError `OwnershipTableMissing`, `WriteSuppressed`, `RowHidden`, `PlanOutdated`, with the record kept, when the row may still be there
 */
async function deleteWithRecord(connection: Connection, outs: HeldDeletion): Promise<void> {
  const { incarnation } = outs;
  const recorded = (await recordedPlaces(connection, [incarnation], { lock: true })).get(incarnation);
  if (recorded === undefined) {
    const table = await unrecordedTable(connection, outs, true);
    return table && deleteFrom(table, outs);
  }
  await releaseRow(connection, incarnation);
  if (recorded.oid === null) return removeRecordedTable(connection, recorded.tableId); // it was dropped, with the row
  const { table, replaced } = await placeOf(connection, outs, outs.hold ? columnsOf(outs) : [], recorded);
  if (table !== undefined) await deleteFrom(table, outs);
  // A copy of the row would be left behind.
  if (replaced !== undefined && (await isUnmanaged(replaced.by, outs))) throw replaced.error;
}

async function isUnmanaged(table: Table, row: RowOutputs): Promise<boolean> {
  return (await isThere(table, row)) && (await findRecord(table, row)) === undefined;
}

/** The table of a row without a record that is to be deleted. @param hasAny whether the database has records at all */
async function unrecordedTable(connection: Connection, outs: RowOutputs, hasAny: boolean): Promise<Table | undefined> {
  const { table } = await placeOf(connection, outs, columnsOf(outs), undefined);
  if (table === undefined) return undefined;
  if (hasAny && (await findRecord(table, outs)) !== undefined) return undefined; // another owner's
  return (await isAsWritten(table, outs)) ? table : undefined;
}

/** The same in a database without records, which may be the wrong one. @throws {@link absenceUnknown} */
async function tableWithoutRecords(connection: Connection, outs: RowOutputs): Promise<Table> {
  const table = await unrecordedTable(connection, outs, false);
  if (table === undefined) throw (await absenceUnknown(connection))(outs);
  return table;
}

/** What the deletion of a row finds; see {@link DynamicProvider.observe}. */
export function observeDeletion(outs: RowOutputs): Promise<unknown> {
  return withTable(parseTableName(outs.table, "table"), withReadTransaction, async (connection) => {
    if (!(await hasRecords(connection))) return found(await tableWithoutRecords(connection, outs), outs);
    const recorded = (await recordedPlaces(connection, [outs.incarnation])).get(outs.incarnation);
    if (recorded === undefined) return found(await unrecordedTable(connection, outs, true), outs);
    if (recorded.oid === null) return null;
    return found((await placeOf(connection, outs, columnsOf(outs), recorded)).table, outs);
  });
}

/** The columns that were written, of a row that is to be deleted; `null` when there is none. */
async function found(
  table: Table | undefined,
  { key, values, incarnation }: RowOutputs,
  lock?: "FOR UPDATE",
): Promise<unknown> {
  if (table === undefined) return null;
  const [row] = await readColumns(table, [{ key, columns: Object.keys(values) }], lock);
  return row === undefined ? null : { row, of: incarnation };
}

async function isAsWritten(table: Table, outs: RowOutputs): Promise<boolean> {
  const { connection } = table;
  if (columnsOf(outs).some((name) => table.columns[name] === undefined)) return false;
  await connection.query("SAVEPOINT comparison");
  try {
    return (await compareRows(table, [outs])).length === 0;
  } catch (error) {
    if (!isUnreadable(sqlStateOf(error))) throw error;
    await connection.query("ROLLBACK TO SAVEPOINT comparison");
    return false;
  }
}

/** A deletion that deleted nothing is none, unless there is nothing. */
async function deleteFrom(table: Table, outs: HeldDeletion): Promise<void> {
  const { column, value } = keyOf(outs);
  if (outs.hold?.admits(await found(table, outs, "FOR UPDATE")) === false) {
    throw await outdatedRow(table, outs, outs.values);
  }
  const { rowCount } = await table.connection.query(
    `DELETE FROM ${quoteTableName(table)} WHERE ${escapeIdentifier(column)} = $1`,
    [value],
  );
  if (await isThere(table, outs)) throw await suppressedWrite(table, outs, "delete");
  if (rowCount === 0 && (await mayHideRows(table))) {
    throw new RetryableError(
      "RowHidden",
      `row ${JSON.stringify(value)} of table ${formatTableName(table)} was not deleted: it is gone, or row security hides it. ` +
        "Give Kindstack's role a policy with USING (true) for SELECT, or set kindstack.dev/deletion-policy: Orphan",
    );
  }
}
