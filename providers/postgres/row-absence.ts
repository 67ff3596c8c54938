import { RetryableError } from "../errors";
import { columnsOf, isUnreadable, type RowValues } from "./comparison";
import { sqlStateOf } from "./errors";
import { formatTableName } from "./identifier";
import { placeOf } from "./placement";
import type { Connection } from "./pool";
import { creationSql } from "./records";
import { keyOf, type RowInputs, type RowOutputs } from "./row-inputs";
import { isThere } from "./suppressed-write";

/*
 * A database without any records may be another one than the database that a row was written to, such as an empty one. There,
 * a row that is missing is neither found nor gone.
 */

type WrittenRow = Pick<RowInputs, "table" | "key"> & Partial<Pick<RowOutputs, "location">>;

/** In a database without records: the error about a row that was written and that the database lacks. */
export async function absenceUnknown(connection: Connection): Promise<(row: WrittenRow) => RetryableError> {
  const { rows } = await connection.query<{ database: string; role: string }>(
    "SELECT current_database() AS database, quote_ident(current_user) AS role",
  );
  const { database = "", role = "" } = rows[0] ?? {};
  return (row) => {
    const table = row.location === undefined ? row.table : formatTableName(row.location);
    return new RetryableError(
      "OwnershipTableMissing",
      `row ${JSON.stringify(keyOf(row).value)} of table ${table} was written, but database ${JSON.stringify(database)} ` +
        "has neither the row as written nor any records of Kindstack: is it the right one? Check PSQL_HOST and " +
        `PSQL_DBNAME. If it is, and has lost rows and records, an administrator runs: ${creationSql(role)}`,
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
