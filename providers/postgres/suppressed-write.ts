import { escapeIdentifier } from "pg";
import { RetryableError } from "../errors";
import { formatTableName, quoteTableName } from "./identifier";
import { type Keyed, keyOf, type RowInputs } from "./row-inputs";
import { describeHooks, type Table } from "./tables";

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
