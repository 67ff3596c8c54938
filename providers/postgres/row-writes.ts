import { escapeIdentifier } from "pg";
import { type ClassifiedError, RetryableError } from "../errors";
import type { CallContext } from "../provider";
import { compareRows, type Difference, describeRewritten, refuseUnstableValues } from "./comparison";
import { isRefusedByPolicy } from "./errors";
import { formatTableName, parseTableName, quoteTableName, refuseTableName, type TableLocation } from "./identifier";
import { claimRows, describeUnmanaged, rowConflict } from "./ownership";
import { commonTable, type RowWrite, recordTable } from "./placement";
import { type Connection, withReadTransaction } from "./pool";
import { isThere, refuseAbsence, suppressedWrite } from "./row-absence";
import { batchedRows, inTransaction, MOST_ROWS } from "./row-batch";
import { keyOf, type RowInputs, type RowOutputs } from "./row-inputs";
import { type HeldRow, outdatedRow, readColumns, refuseOutdated } from "./row-observation";
import { describeHooks, findTable, mayHideRows, type Table, tableMissing } from "./tables";

/** Maximum number of parameters of a statement in PostgreSQL's protocol. */
const MOST_PARAMETERS = 65_535;

interface Written {
  location: TableLocation;
  /** Rows that are new to the state, and were there before. */
  adopted: ReadonlySet<HeldRow>;
}

const writeBatched = batchedRows<HeldRow, Written>({
  run: async (batch, fence) => {
    try {
      return await inTransaction(batch, writeRows, lookFirst, fence);
    } catch (error) {
      const [only, ...others] = batch as [HeldRow, ...HeldRow[]];
      if (others.length > 0) throw error;
      if (error instanceof UnwrittenError) throw await explainUnwritten(only, error);
      throw isRefusedByPolicy(error) ? await explainPolicy(only, error) : error;
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
export async function writeRow(
  write: RowWrite,
  former: RowInputs["values"] | undefined,
  context: CallContext,
): Promise<RowOutputs> {
  refuseTableName(parseTableName(write.table, "table"), write.owner.namespace);
  const { table, key, values, owner, incarnation } = write;
  const row = { ...write, former, hold: context?.hold };
  const { location, adopted } = await writeBatched(row, context?.fence);
  return { table, key, values, owner, location, incarnation, ...(adopted.has(row) && { created: false }) };
}

/** In a database without records, a row that was written before is there, and a new one has a table. */
async function lookFirst(connection: Connection, { location, ...row }: HeldRow): Promise<void> {
  if (location !== undefined) return refuseAbsence(connection, { ...row, location });
  const name = parseTableName(row.table, "table");
  if ((await findTable(connection, name)) === undefined) throw tableMissing(name);
}

async function writeRows(connection: Connection, all: readonly [HeldRow, ...HeldRow[]]): Promise<Written> {
  const [first] = all;
  const { table, id: recorded, hasMoved } = await commonTable(connection, all);
  refuseTableName(table, first.owner.namespace);
  for (const row of all) refuseUnstableValues(table, row);
  const id = recorded ?? (await recordTable(table));
  const absent = await refuseOutdated(table, id, all);
  if (hasMoved) await moveRecord(connection, first.incarnation, id);
  const newKeys = await claimRows(table, id, all);
  const isNew = (row: HeldRow) => absent.has(row) || (row.location === undefined && newKeys.has(keyOf(row).value));
  const [made, ours] = [all.filter(isNew), all.filter((row) => !isNew(row))];
  const known = ours.filter(({ location }) => location === undefined);
  // One connection sends them in this order.
  const [before, inserted, updated, [difference]] = await Promise.all([
    readColumns(
      table,
      known.map(({ key }) => ({ key, columns: [] })),
    ),
    upsertRows(table, made, false),
    upsertRows(table, ours, true),
    compareRows(table, all),
  ]);
  if (inserted !== made.length || updated !== ours.length) throw new UnwrittenError(table, inserted === made.length);
  if (difference !== undefined) throw await rewritten(table, all, difference);
  const { schema, name } = table;
  return { location: { schema, name }, adopted: new Set(known.filter((_, index) => before[index] !== undefined)) };
}

/** The row is in another table by now that has the former one's rows, such as a view of it. @param id of the table */
async function moveRecord(connection: Connection, incarnation: string, id: string): Promise<void> {
  await connection.query("UPDATE kindstack_ownership.records SET table_id = $1 WHERE incarnation = $2", [
    id,
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

/** @returns the number of rows that were written */
async function upsertRows(table: Table, rows: readonly RowInputs[], mayOverwrite: boolean): Promise<number> {
  const [first] = rows;
  if (first === undefined) return 0;
  const key = escapeIdentifier(keyOf(first).column);
  const names = Object.keys(first.values);
  const columns = names.map(escapeIdentifier);
  const parameters = rows.flatMap((row) => [keyOf(row).value, ...names.map((name) => row.values[name])]);
  const width = names.length + 1;
  const tuples = rows.map((_, row) => Array.from({ length: width }, (_, column) => `$${2 + row * width + column}`));
  const { rowCount } = await table.connection.query(
    `INSERT INTO ${quoteTableName(table)} (${[key, ...columns].join(", ")})
     VALUES ${tuples.map((tuple) => `(${tuple.join(", ")})`).join(", ")}
     ON CONFLICT (${key}) DO UPDATE
     SET ${columns.map((column) => `${column} = EXCLUDED.${column}`).join(", ")} WHERE $1::boolean`,
    [mayOverwrite, ...parameters],
  );
  return rowCount ?? 0;
}

/** Why a row was not written: it has no record and was there before, or something in the database suppressed the write. */
function explainUnwritten(row: HeldRow, { table: known, mayOverwrite }: UnwrittenError): Promise<RetryableError> {
  return withReadTransaction(async (connection) => {
    const table = { ...known, connection };
    if (!mayOverwrite && (await isThere(table, row))) {
      if (row.hold !== undefined) return outdatedRow(table, row, row.former);
      return rowConflict(table, row, describeUnmanaged(table, row));
    }
    return suppressedWrite(table, row, mayOverwrite ? "update" : "insert");
  });
}

/** A write reads what is there: the database names no policy, and an INSERT policy alone is not enough. */
function explainPolicy({ table: name }: HeldRow, error: ClassifiedError): Promise<ClassifiedError> {
  return withReadTransaction(async (connection) => {
    const table = await findTable(connection, parseTableName(name, "table"));
    if (table === undefined || !(await mayHideRows(table))) return error;
    const advice =
      "row security may hide rows from Kindstack's role: give it a policy with USING (true) for SELECT as well";
    return new RetryableError("PermissionDenied", `${error.message}; ${advice}`, { cause: error });
  });
}

async function rewritten(
  table: Table,
  all: readonly RowInputs[],
  { index, live }: Difference,
): Promise<RetryableError> {
  const row = all[index] as RowInputs;
  if (live === undefined) return suppressedWrite(table, row, "insert");
  const hooks = await describeHooks(table, ["INSERT", "UPDATE"]);
  return new RetryableError(
    "ValueRewritten",
    `row ${JSON.stringify(keyOf(row).value)} of table ${formatTableName(table)}: ${describeRewritten(table, row, live)}; nothing was ` +
      `written. Write the value as the database makes it, or change the table${hooks && ` (${hooks})`}`,
  );
}
