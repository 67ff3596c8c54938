import { escapeIdentifier } from "pg";
import { RetryableError } from "../errors";
import { columnsOf, isUnreadable, type RowValues } from "./comparison";
import { sqlStateOf } from "./errors";
import { formatTableName, quoteTableName } from "./identifier";
import { placeOf } from "./placement";
import type { Connection } from "./pool";
import { type Keyed, keyOf, type RowInputs, type RowOutputs } from "./row-inputs";
import { creationSql } from "./table-lock";
import { describeHooks, type Table } from "./tables";

/*
 * A database without any records may be another one than the database that a row was written to, such as an empty one. There,
 * a row that is missing is neither found nor gone.
 */

type WrittenRow = Pick<RowInputs, "table" | "key"> & Partial<Pick<RowOutputs, "location">>;

/** In a database without records: the error about a row that was written and that the database lacks. */
export async function absenceUnknown(connection: Connection): Promise<(row: WrittenRow) => RetryableError> {
  const { rows } = await connection.query<{ database: string }>("SELECT current_database() AS database");
  const { database = "" } = rows[0] ?? {};
  const sql = await creationSql(connection);
  return (row) => {
    const table = row.location === undefined ? row.table : formatTableName(row.location);
    return new RetryableError(
      "OwnershipTableMissing",
      `row ${JSON.stringify(keyOf(row).value)} of table ${table} was written, but database ${JSON.stringify(database)} ` +
        "has neither the row as written nor any records of Kindstack: is it the right one? Check PSQL_HOST and " +
        `PSQL_DBNAME. If it is, and has lost rows and records, an administrator runs: ${sql}`,
      { dependency: "table kindstack_ownership.records" },
    );
  };
}

/** Refuses a row that was written and that a database without records lacks. @throws {@link absenceUnknown} */
export async function refuseAbsence(
  connection: Connection,
  row: RowValues & Pick<RowOutputs, "table" | "location">,
): Promise<void> {
  const unknown = await absenceUnknown(connection); // first: no statement follows one that failed
  const { table } = await placeOf(connection, row, columnsOf(row), undefined);
  if (table === undefined) throw unknown(row);
  const isFound = await isThere(table, row).catch((error: unknown) => {
    if (!isUnreadable(sqlStateOf(error))) throw error;
    return false;
  });
  if (!isFound) throw unknown(row);
}

const EVENTS = { insert: ["INSERT"], update: ["INSERT", "UPDATE"], delete: ["DELETE"] } as const;

/** The error about a write that the database took, and did not do. */
export async function suppressedWrite(
  table: Table,
  row: RowInputs,
  what: keyof typeof EVENTS,
): Promise<RetryableError> {
  const hooks = await describeHooks(table, EVENTS[what]);
  return new RetryableError(
    "WriteSuppressed",
    `the database did not ${what} row ${JSON.stringify(keyOf(row).value)} of table ${formatTableName(table)}, and gave no error; ` +
      `the table has: ${hooks || "no trigger and no rule of its own"}`,
  );
}

export async function isThere(table: Table, row: Keyed): Promise<boolean> {
  const { column, value } = keyOf(row);
  const { rowCount } = await table.connection.query(
    `SELECT FROM ${quoteTableName(table)} WHERE ${escapeIdentifier(column)} = $1 LIMIT 1`,
    [value],
  );
  return (rowCount ?? 0) > 0;
}
