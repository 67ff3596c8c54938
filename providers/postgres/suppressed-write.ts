import { escapeIdentifier } from "pg";
import { RetryableError } from "../errors";
import { formatTableName, quoteTableName, type TableLocation } from "./identifier";
import type { Connection } from "./pool";
import { keyOf, type RowInputs } from "./row-inputs";
import { describeHooks, type Table } from "./tables";

/** The error about a write that the database took, and did not do. */
export async function suppressedWrite(
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
