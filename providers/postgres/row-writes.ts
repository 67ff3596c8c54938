import { escapeIdentifier } from "pg";
import { batched } from "../batched";
import { RetryableError } from "../errors";
import { refuseTableName } from "./allow-list";
import {
  columnsOf,
  compareRows,
  type Difference,
  describeRewritten,
  isUnreadable,
  refuseUnstableValues,
} from "./comparison";
import { isUnanswered, sqlStateOf } from "./errors";
import { formatTableName, parseTableName, quoteTableName, type TableLocation } from "./identifier";
import { claimRows, findRecord, releaseRow, rowConflict, UNMANAGED } from "./ownership";
import { forgetTable, placeOf, recordedPlaces, recordTable, tableId } from "./placement";
import { type Connection, withReadTransaction } from "./pool";
import { withOwnershipRecords } from "./records";
import { keyOf, type RowInputs, type RowOutputs } from "./row-inputs";
import { lockTimeoutMs, TableUnavailableError, withTable } from "./table-lock";
import { describeHooks, findTable, mayHideRows, type Table, tableMissing } from "./tables";

interface Write extends RowInputs {
  incarnation: string;
  /** Where the state says that the row is; absent for a row that has yet to be made. One without a record may be overwritten. */
  location?: TableLocation;
}

/** Maximum number of rows in a batch; larger ones are not faster. */
const MOST_ROWS = 64;
/** Maximum number of parameters of a statement in PostgreSQL's protocol. */
const MOST_PARAMETERS = 65_535;

/** Several rows cannot be written together; each is written alone. */
class NotTogetherError extends Error {}

/** Whether an error of several rows is about all of them, not one. */
function isForAll(error: unknown): boolean {
  return isUnanswered(error) || error instanceof TableUnavailableError;
}

const writeBatched = batched<Write, TableLocation>({
  isForAll,
  run: async (batch) => {
    try {
      return await inTransaction(batch, writeRows);
    } catch (error) {
      const [only, ...others] = batch as [Write, ...Write[]];
      throw error instanceof UnwrittenError && others.length === 0 ? await explainUnwritten(only, error) : error;
    }
  },
  batchKey: (write) =>
    JSON.stringify([write.table, keyOf(write).column, Object.keys(write.values), write.owner.namespace]),
  maxSize: ({ values }) => Math.min(MOST_ROWS, Math.floor(MOST_PARAMETERS / (Object.keys(values).length + 2))),
});

/**
 * Writes the row and the record of its owner: exactly as it should be, or not at all.
 *
 * @throws RetryableError `RowConflict`, `TableMissing`, `ValueRewritten` and what else may heal; TerminalError for what
 *   cannot be written
 */
export async function writeRow(write: Write): Promise<RowOutputs> {
  refuseTableName(parseTableName(write.table, "table"), write.owner.namespace);
  const { table, key, values, owner, incarnation } = write;
  return { table, key, values, owner, location: await writeBatched(write), incarnation };
}

async function writeRows(connection: Connection, all: readonly [Write, ...Write[]]): Promise<TableLocation> {
  const [first] = all;
  const table = await commonTable(connection, all);
  refuseTableName(table, first.owner.namespace);
  for (const row of all) refuseUnstableValues(table, row);
  const newKeys = await claimRows(connection, table, await recordTable(connection, table), all);
  for (const mayOverwrite of [true, false]) {
    const those = all.filter((row) => (row.location !== undefined || !newKeys.has(keyOf(row).value)) === mayOverwrite);
    const written = await upsertRows(connection, table, those, mayOverwrite);
    if (written !== those.length) throw new UnwrittenError(table, mayOverwrite);
  }
  const [difference] = await compareRows(connection, table, all);
  if (difference !== undefined) throw await rewritten(connection, table, all, difference);
  const { schema, name } = table;
  return { schema, name };
}

/** The table that all these rows are in, or are to be in. */
async function commonTable(connection: Connection, all: readonly [Write, ...Write[]]): Promise<Table> {
  const [{ location, ...first }] = all;
  const name = parseTableName(first.table, "table");
  const made = all.flatMap((row) => (row.location === undefined ? [] : [row.incarnation]));
  const places = await recordedPlaces(connection, made);
  const named = await findTable(connection, name, columnsOf(first));
  const isElsewhere = [...places.values()].some(({ oid }) => oid !== undefined && oid !== named?.oid);
  if (named !== undefined && !isElsewhere) return named;
  if (all.length > 1) throw new NotTogetherError();
  const recorded = places.get(first.incarnation);
  const place = location && (await placeOf(connection, { ...first, location }, columnsOf(first), recorded));
  if (place?.replaced !== undefined) throw place.replaced.error;
  const table = place?.table;
  if (table === undefined) throw tableMissing(name);
  if (recorded !== undefined && recorded.oid !== table.oid) await moveRecord(connection, first.incarnation, table);
  return table;
}

/** The row is in another table by now that has the former one's rows, such as a view of it. */
async function moveRecord(connection: Connection, incarnation: string, table: Table): Promise<void> {
  await connection.query("UPDATE kindstack_ownership.records SET table_id = $1 WHERE incarnation = $2", [
    await recordTable(connection, table),
    incarnation,
  ]);
}

/** Some of these rows were not written, and the database has said nothing about it. */
class UnwrittenError extends Error {
  constructor(
    readonly table: Table,
    readonly mayOverwrite: boolean,
  ) {
    super(`rows of table ${formatTableName(table)} were not written`);
  }
}

/**
 * Runs a transaction that writes these rows of one table. They are in the same order everywhere, so that of two batches
 * that want the same rows none waits for the other in a circle.
 */
function inTransaction<Row extends RowInputs, T>(
  batch: readonly Row[],
  work: (connection: Connection, rows: readonly [Row, ...Row[]]) => Promise<T>,
): Promise<T> {
  const all = [...batch].sort((a, b) => (keyOf(a).value < keyOf(b).value ? -1 : 1)) as [Row, ...Row[]];
  const [first] = all;
  const table = parseTableName(first.table, "table");
  return withTable(
    table,
    (inTransaction) => withOwnershipRecords(inTransaction, lockTimeoutMs(table)),
    (connection) => work(connection, all),
    all.length === 1 ? keyOf(first) : undefined,
  );
}

/** @returns the number of rows that were written */
async function upsertRows(
  connection: Connection,
  table: TableLocation,
  rows: readonly RowInputs[],
  mayOverwrite: boolean,
): Promise<number> {
  const [first] = rows;
  if (first === undefined) return 0;
  const key = escapeIdentifier(keyOf(first).column);
  const names = Object.keys(first.values);
  const columns = names.map(escapeIdentifier);
  const parameters = rows.flatMap((row) => [keyOf(row).value, ...names.map((name) => row.values[name])]);
  const width = names.length + 1;
  const tuples = rows.map((_, row) => Array.from({ length: width }, (_, column) => `$${2 + row * width + column}`));
  const { rowCount } = await connection.query(
    `INSERT INTO ${quoteTableName(table)} (${[key, ...columns].join(", ")})
     VALUES ${tuples.map((tuple) => `(${tuple.join(", ")})`).join(", ")}
     ON CONFLICT (${key}) DO UPDATE
     SET ${columns.map((column) => `${column} = EXCLUDED.${column}`).join(", ")} WHERE $1::boolean`,
    [mayOverwrite, ...parameters],
  );
  return rowCount ?? 0;
}

/** Why a row was not written: it has no record and was there before, or something in the database suppressed the write. */
function explainUnwritten(row: Write, { table, mayOverwrite }: UnwrittenError): Promise<RetryableError> {
  return withReadTransaction(async (connection) => {
    if (!mayOverwrite && (await isThere(connection, table, row))) return rowConflict(table, row, UNMANAGED);
    return suppressed(connection, table, row, mayOverwrite ? "update" : "insert");
  });
}

async function suppressed(
  connection: Connection,
  table: Table,
  row: RowInputs,
  what: "insert" | "update" | "delete",
): Promise<RetryableError> {
  const events = { insert: ["INSERT"], update: ["INSERT", "UPDATE"], delete: ["DELETE"] } as const;
  const hooks = await describeHooks(connection, table.oid, events[what]);
  return new RetryableError(
    "WriteSuppressed",
    `the database did not ${what} row ${JSON.stringify(keyOf(row).value)} of table ${formatTableName(table)}, and gave no error; ` +
      `the table has: ${hooks || "no trigger and no rule of its own"}`,
  );
}

/** The error about a row that is not as it was written. */
async function rewritten(
  connection: Connection,
  table: Table,
  all: readonly RowInputs[],
  { index, live }: Difference,
): Promise<RetryableError> {
  const row = all[index] as RowInputs;
  if (live === undefined) return suppressed(connection, table, row, "insert");
  const hooks = await describeHooks(connection, table.oid, ["INSERT", "UPDATE"]);
  return new RetryableError(
    "ValueRewritten",
    `row ${JSON.stringify(keyOf(row).value)} of table ${formatTableName(table)}: ${describeRewritten(table, row, live)}; nothing was ` +
      `written. Write the value as the database makes it, or change the table${hooks && ` (${hooks})`}`,
  );
}

export async function isThere(
  connection: Connection,
  table: TableLocation,
  row: Pick<RowInputs, "key">,
): Promise<boolean> {
  const { column, value } = keyOf(row);
  const { rowCount } = await connection.query(
    `SELECT FROM ${quoteTableName(table)} WHERE ${escapeIdentifier(column)} = $1 LIMIT 1`,
    [value],
  );
  return (rowCount ?? 0) > 0;
}

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
  if (recorded.oid === undefined) return forgetTable(connection, recorded.tableId); // it was dropped, with the row
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
  if (await isThere(connection, table, outs)) throw await suppressed(connection, table, outs, "delete");
  if (rowCount === 0 && (await mayHideRows(connection, table.oid))) {
    throw new RetryableError(
      "RowHidden",
      `row ${JSON.stringify(value)} of table ${formatTableName(table)} was not deleted: it is gone, or row security hides it. ` +
        "Give Kindstack's role a policy with USING (true) for SELECT, or set kindstack.dev/deletion-policy: Orphan",
    );
  }
}
