import { escapeIdentifier } from "pg";
import { formerCluster, recordedDescription } from "./clusters";
import { parseTableName, quoteTableName, type TableLocation } from "./identifier";
import { describeHolder, findRecord, rowConflict, UNMANAGED } from "./ownership";
import { withReadTransaction } from "./pool";
import { keyOf, type RowInputs } from "./row-inputs";

/**
 * Why a row would be refused with `RowConflict`, found by looking alone; `undefined` when nothing is in its way.
 *
 * @param owners UIDs under which the row may be recorded
 * @param incarnation that of the row in the state; absent for a row that is yet to be created
 * @throws ClassifiedError when it cannot be told
 */
export function findRowConflict(
  inputs: RowInputs,
  { owners, incarnation }: { owners: readonly string[]; incarnation?: string },
): Promise<string | undefined> {
  return withReadTransaction(async (connection) => {
    const { rows } = await connection.query<TableLocation>(
      `SELECT nspname AS schema, relname AS name FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
       WHERE pg_class.oid = to_regclass($1)`,
      [quoteTableName(parseTableName(inputs.table, "table"))],
    );
    const [table] = rows;
    if (table === undefined) return undefined; // a table that does not exist has no rows
    const record = await findRecord(connection, table, inputs);
    if (record !== undefined) {
      const { owner } = inputs;
      const isOurs =
        owners.includes(record.owner) ||
        record.incarnation === incarnation ||
        (owner.cluster !== undefined && record.description === recordedDescription(owner)) ||
        (await formerCluster(connection, owner, record.description))?.isGone;
      if (isOurs) return undefined;
      return rowConflict(table, inputs, await describeHolder(connection, table, inputs, record)).message;
    }
    if (incarnation !== undefined) return undefined;
    const { column, value } = keyOf(inputs);
    const { rowCount } = await connection.query(
      `SELECT FROM ${quoteTableName(table)} WHERE ${escapeIdentifier(column)} = $1 LIMIT 1`,
      [value],
    );
    return rowCount ? rowConflict(table, inputs, UNMANAGED).message : undefined;
  });
}
