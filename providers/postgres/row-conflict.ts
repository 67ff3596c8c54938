import { formatTableName, parseTableName, quoteIdentifier, quoteTableName } from "./identifier";
import { describeHolder, findRecord, formerCluster, isRecordOf } from "./ownership";
import { type Connection, withConnection } from "./pool";
import { keyOf } from "./row";
import type { RowInputs } from "./row-inputs";

/** Who asks for a row. */
export interface Claimant {
  /** UIDs under which the row may be recorded. */
  owners: readonly string[];
  /** That of the row in the state; absent for a row that has yet to be made. */
  incarnation?: string;
}

/**
 * Why a row would be refused with `RowConflict`, found by looking alone; `undefined` when nothing is in its way.
 *
 * @throws ClassifiedError when it cannot be told
 */
export function findRowConflict(inputs: RowInputs, { owners, incarnation }: Claimant): Promise<string | undefined> {
  return withConnection(async (connection) => {
    const written = quoteTableName(parseTableName(inputs.table, "table"));
    const { rows } = await connection.query<{ schema: string; name: string }>(
      `SELECT nspname AS schema, relname AS name FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
       WHERE pg_class.oid = to_regclass($1)`,
      [written],
    );
    const [table] = rows;
    if (table === undefined) return undefined; // a table that does not exist has no rows
    const key = keyOf(inputs);
    const record = await findRecord(connection, table, key.value);
    const row = `row ${JSON.stringify(key.value)} of table ${formatTableName(table)}`;
    if (record !== undefined) {
      const isOurs =
        owners.includes(record.owner) ||
        record.incarnation === incarnation ||
        isRecordOf(record, inputs.owner) ||
        (await formerCluster(connection, inputs.owner, record))?.isGone;
      if (isOurs) return undefined;
      return `${row} ${await describeHolder(connection, table, { key: key.value, owner: inputs.owner }, record)}`;
    }
    const isStrange = incarnation === undefined && (await exists(connection, quoteTableName(table), key));
    return isStrange ? `${row} was not created by Kindstack; delete it, or use another table` : undefined;
  });
}

async function exists(
  connection: Connection,
  table: string,
  { column, value }: { column: string; value: string },
): Promise<boolean> {
  const { rowCount } = await connection.query(`SELECT FROM ${table} WHERE ${quoteIdentifier(column)} = $1 LIMIT 1`, [
    value,
  ]);
  return (rowCount ?? 0) > 0;
}
