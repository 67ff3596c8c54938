import { escapeIdentifier } from "pg";
import { batched } from "../batched";
import { refuseTableName } from "./allow-list";
import { isUnanswered } from "./errors";
import { quoteTableName, type TableLocation, type TableName } from "./identifier";
import { claimRows, rowConflict, UNMANAGED, withOwnershipRecords } from "./ownership";
import type { Connection } from "./pool";
import { keyOf, type RowInputs, type RowOutputs } from "./row-inputs";
import { lockTimeoutMs, TableUnavailableError, withTable } from "./table-lock";

interface Write extends RowInputs {
  /** Where; as the user names the table, for a row that has yet to be made. */
  location: TableName;
  incarnation: string;
  /** Whether the state says that the row is ours, so that one without a record may be overwritten. */
  isOurs: boolean;
}

/** Maximum number of rows in a batch; larger ones are not faster. */
const MOST_ROWS = 64;
/** Maximum number of parameters of a statement in PostgreSQL's protocol. */
const MOST_PARAMETERS = 65_535;

/** Whether an error of several rows is about all of them, not one. */
function isForAll(error: unknown): boolean {
  return isUnanswered(error) || error instanceof TableUnavailableError;
}

const writeBatched = batched<Write, TableLocation>({
  isForAll,
  run: writeRows,
  batchKey: (write) => JSON.stringify([quoteTableName(write.location), keyOf(write).column, Object.keys(write.values)]),
  maxSize: ({ values }) => Math.min(MOST_ROWS, Math.floor(MOST_PARAMETERS / (Object.keys(values).length + 2))),
});

export const deleteRow = batched<RowOutputs, void>({
  isForAll,
  run: (batch) =>
    writeTable(batch, async (connection, all) => {
      for (const outs of all) await deleteWithRecord(connection, outs);
    }),
  batchKey: ({ location }) => quoteTableName(location),
  maxSize: () => MOST_ROWS,
});

/**
 * Writes the row and the record of its owner.
 *
 * @throws RetryableError `RowConflict`, `TableMissing` and what else may heal; TerminalError for what cannot be written
 */
export async function writeRow(write: Write): Promise<RowOutputs> {
  refuseTableName(write.location);
  const { table, key, values, owner, incarnation } = write;
  return { table, key, values, owner, location: await writeBatched(write), incarnation };
}

function writeRows(batch: readonly Write[]): Promise<TableLocation> {
  return writeTable(batch, async (connection, all) => {
    const { location, newKeys } = await claimRows(connection, all[0].location, all);
    for (const mayOverwrite of [true, false]) {
      const those = all.filter((row) => (row.isOurs || !newKeys.has(keyOf(row).value)) === mayOverwrite);
      await upsertRows(connection, location, those, mayOverwrite);
    }
    return location;
  });
}

/**
 * Runs a transaction that writes these rows of one table. They are in the same order everywhere, so that of two batches
 * that want the same rows none waits for the other in a circle.
 */
function writeTable<Row extends RowInputs & { location: TableName }, T>(
  batch: readonly Row[],
  work: (connection: Connection, rows: readonly [Row, ...Row[]]) => Promise<T>,
): Promise<T> {
  const all = [...batch].sort((a, b) => (keyOf(a).value < keyOf(b).value ? -1 : 1)) as [Row, ...Row[]];
  const [first] = all;
  return withTable(
    first.location,
    (inTransaction) => withOwnershipRecords(inTransaction, lockTimeoutMs(first.location)),
    (connection) => work(connection, all),
    all.length === 1 ? keyOf(first) : undefined,
  );
}

async function upsertRows(
  connection: Connection,
  table: TableLocation,
  rows: readonly RowInputs[],
  mayOverwrite: boolean,
): Promise<void> {
  const [first] = rows;
  if (first === undefined) return;
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
  if (rowCount !== rows.length) throw rowConflict(table, first, UNMANAGED);
}

/**
 * Deletes the row together with the record that it is ours. Without any record, as after the restore of a backup that
 * left out the records, the row is deleted if it is just as we wrote it. The comparison is made in JSON because it must
 * not fail: a column that has another type by now would otherwise keep its object from ever being deleted.
 */
async function deleteWithRecord(connection: Connection, outs: RowOutputs): Promise<void> {
  const { column, value } = keyOf(outs);
  await connection.query(
    `WITH released AS (
       DELETE FROM kindstack_ownership.rows
       WHERE table_schema = $1 AND table_name = $2 AND key = $3 AND incarnation = $4
       RETURNING key
     )
     DELETE FROM ${quoteTableName(outs.location)} AS live
     WHERE ${escapeIdentifier(column)} = $5 AND (
       EXISTS (SELECT FROM released) OR
       to_jsonb(live.*) @> $6::jsonb AND NOT EXISTS (
         SELECT FROM kindstack_ownership.rows WHERE table_schema = $1 AND table_name = $2 AND key = $3
       )
     )`,
    [outs.location.schema, outs.location.name, value, outs.incarnation, value, JSON.stringify(outs.values)],
  );
}
