import { escapeLiteral } from "pg";
import { errorMessageOf, RetryableError } from "../errors";
import { refuseTableName } from "./allow-list";
import { CREATE_CLUSTERS, formerCluster, recordedDescription, takeOver } from "./clusters";
import { sqlStateOf } from "./errors";
import { formatTableName, quoteTableName, type TableLocation, type TableName } from "./identifier";
import { type Connection, withReadTransaction, withTransaction } from "./pool";
import { keyOf, type RowInputs, type RowOutputs } from "./row-inputs";

/*
 * The records of who owns which row. A row cannot carry a label of its owner, as its columns are the user's; so it has a
 * record in a table of Kindstack's own, written in the same transaction as the row. Its schema must not have a name that a
 * role might have: PostgreSQL looks for tables first in the schema that is called like the user.
 */

const CREATE_SCHEMA = "CREATE SCHEMA IF NOT EXISTS kindstack_ownership";
const CREATE_ROWS = `CREATE TABLE IF NOT EXISTS kindstack_ownership.rows (
  table_schema text NOT NULL,
  table_name text NOT NULL,
  key text NOT NULL,
  owner text NOT NULL,
  description text NOT NULL,
  incarnation text NOT NULL,
  PRIMARY KEY (table_schema, table_name, key)
)`;
/** After a crash, each object whose update was cut off is asked for what it has. */
const CREATE_INDEX = "CREATE INDEX IF NOT EXISTS rows_by_owner ON kindstack_ownership.rows (owner)";

/** An advisory lock's number: it keeps two operators from creating the tables at the same moment. */
const CREATION_LOCK = 7_046_029_254_386_353n;
/** Others hold the lock only while they create the tables, for a few statements. */
const CREATION_LOCK_TIMEOUT_MS = 5_000;

/**
 * Runs `work` in a transaction in which the ownership records can be used; the first use in a database creates their
 * tables.
 *
 * @param lockTimeoutMs see {@link withTransaction}
 * @throws RetryableError `OwnershipTableMissing` with the SQL for an administrator when they may not be created
 */
export async function withOwnershipRecords<T>(
  work: (connection: Connection) => Promise<T>,
  lockTimeoutMs?: number,
): Promise<T> {
  try {
    return await withTransaction(work, lockTimeoutMs);
  } catch (error) {
    // The message comes in the server's language, the name in it does not.
    const isMissing = sqlStateOf(error) === "42P01" && errorMessageOf(error).includes('"kindstack_ownership.rows"');
    if (!isMissing) throw error;
    await createTables();
    return withTransaction(work, lockTimeoutMs);
  }
}

async function createTables(): Promise<void> {
  try {
    await withTransaction(async (connection) => {
      await connection.query("SELECT pg_advisory_xact_lock($1)", [CREATION_LOCK]);
      const { rows } = await connection.query<{ exists: boolean }>(
        "SELECT to_regnamespace('kindstack_ownership') IS NOT NULL AS exists",
      );
      // Even IF NOT EXISTS asks for the permission to create a schema.
      if (!rows[0]?.exists) await connection.query(CREATE_SCHEMA);
      for (const statement of [CREATE_ROWS, CREATE_INDEX, CREATE_CLUSTERS]) await connection.query(statement);
    }, CREATION_LOCK_TIMEOUT_MS);
  } catch (error) {
    if (sqlStateOf(error) !== "42501") throw error;
    const user = await withReadTransaction((connection) =>
      connection.query<{ name: string }>("SELECT quote_ident(current_user) AS name"),
    );
    const role = user.rows[0]?.name;
    throw new RetryableError(
      "OwnershipTableMissing",
      `${errorMessageOf(error)}: Kindstack may not create its table of row owners; an administrator must run: ` +
        `${[CREATE_SCHEMA, CREATE_ROWS, CREATE_INDEX, CREATE_CLUSTERS].join("; ").replace(/\s+/g, " ")}; ` +
        `GRANT USAGE ON SCHEMA kindstack_ownership TO ${role}; ` +
        `GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA kindstack_ownership TO ${role};`,
      { cause: error, dependency: "table kindstack_ownership.rows" },
    );
  }
}

export interface OwnershipRecord {
  owner: string;
  description: string;
  incarnation: string;
}

/**
 * Records who has these rows, and locks the records until the transaction's end: two who want the same row come one after
 * the other, and the second sees what the first did.
 *
 * A record is taken over from a former owner by a row with its incarnation, which is in one state only, and by one for the
 * object of the same name in the same cluster, or in one that is gone.
 *
 * @returns the table that the name means, and the keys that had no record yet
 * @throws RetryableError `RowConflict` when a row has another owner, `TableMissing`; TerminalError `TableNotAllowed`
 */
export async function claimRows(
  connection: Connection,
  table: TableName,
  wanted: readonly Pick<RowOutputs, "key" | "owner" | "incarnation">[],
): Promise<{ location: TableLocation; newKeys: ReadonlySet<string> }> {
  const { rows } = await connection.query<{
    schema: string;
    name: string;
    visible: boolean;
    key: string | null;
    is_new: boolean | null;
  }>(
    `WITH target AS (
       SELECT nspname, relname, pg_table_is_visible(pg_class.oid) AS visible
       FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
       WHERE pg_class.oid = $1::regclass
     ), claimed AS (
       INSERT INTO kindstack_ownership.rows AS held (table_schema, table_name, key, owner, description, incarnation)
       SELECT nspname, relname, wanted.* FROM target, unnest($2::text[], $3::text[], $4::text[], $5::text[]) AS wanted
       ON CONFLICT (table_schema, table_name, key) DO UPDATE
       SET owner = excluded.owner, description = excluded.description, incarnation = excluded.incarnation
       WHERE held.owner = excluded.owner OR held.incarnation = excluded.incarnation
         OR held.description = excluded.description AND held.description = ANY($6::text[])
       RETURNING key, xmax = 0 AS is_new -- a record that was there before carries the lock of this update
     )
     SELECT nspname AS schema, relname AS name, visible, key, is_new FROM target LEFT JOIN claimed ON true`,
    [
      quoteTableName(table),
      wanted.map((row) => keyOf(row).value),
      wanted.map(({ owner }) => owner.uid),
      wanted.map(({ owner }) => recordedDescription(owner)),
      wanted.map(({ incarnation }) => incarnation),
      wanted.flatMap(({ owner }) => (owner.cluster === undefined ? [] : [recordedDescription(owner)])),
    ],
  );
  const [target] = rows;
  if (target === undefined) throw new RetryableError("TableMissing", `${formatTableName(table)} was dropped`);
  refuseTableName(target);
  const location = { schema: target.schema, name: target.name };
  const claimed = new Set(rows.map(({ key }) => key));
  const refused = wanted.filter((row) => !claimed.has(keyOf(row).value));
  const takenOver = await takeOver(connection, location, refused);
  const other = refused.find((row) => !takenOver.has(keyOf(row).value));
  if (other !== undefined) {
    const record = await findRecord(connection, location, other);
    throw rowConflict(location, other, await describeHolder(connection, location, other, record));
  }
  return { location, newKeys: new Set(rows.flatMap(({ key, is_new }) => (is_new && key !== null ? [key] : []))) };
}

/** Why a row that has no record is refused. */
export const UNMANAGED = "was not created by Kindstack; delete it, or use another table";

/** A row of another owner is in the way; it may be removed without an event, so the update is retried. */
export function rowConflict(table: TableName, row: Pick<RowInputs, "key">, problem: string): RetryableError {
  const { value } = keyOf(row);
  return new RetryableError(
    "RowConflict",
    `row ${JSON.stringify(value)} of table ${formatTableName(table)} ${problem}`,
  );
}

/** Who has a row that another owner wants, and what to do about it. */
export async function describeHolder(
  connection: Connection,
  { schema, name }: TableLocation,
  row: Pick<RowInputs, "key" | "owner">,
  record: OwnershipRecord | undefined,
): Promise<string> {
  if (record === undefined) return "belonged to another owner a moment ago";
  const { owner } = row;
  const holder = `belongs to ${record.description} (UID ${record.owner})`;
  const isNamesake = `${record.description} in cluster `.startsWith(`${owner.description} in cluster `);
  if (!isNamesake) return `${holder}; delete that object, or use another table`;
  const [uid, inSchema, inTable, id] = [owner.uid, schema, name, keyOf(row).value].map(escapeLiteral);
  const cluster = await formerCluster(connection, owner, record.description);
  // Without times: a message that changes with each try would be an Event each time.
  const takeover = cluster && `it is taken over ${cluster.takeoverSeconds} s after the last sign of that cluster; `;
  return (
    `${holder}; ${takeover ?? ""}if that object is gone, transfer the row: UPDATE kindstack_ownership.rows SET owner = ${uid} ` +
    `WHERE table_schema = ${inSchema} AND table_name = ${inTable} AND key = ${id}`
  );
}

/** Forgets the row, if this incarnation has it. */
export async function releaseRow(connection: Connection, row: RowOutputs): Promise<void> {
  const { location, incarnation } = row;
  await connection.query(
    "DELETE FROM kindstack_ownership.rows WHERE table_schema = $1 AND table_name = $2 AND key = $3 AND incarnation = $4",
    [location.schema, location.name, keyOf(row).value, incarnation],
  );
}

/** All records of an owner; none when no row in this database ever had an owner. */
export async function recordsOf(
  connection: Connection,
  uid: string,
): Promise<{ location: TableLocation; key: string; incarnation: string }[]> {
  if (!(await hasRecords(connection))) return [];
  const { rows } = await connection.query<{ schema: string; name: string; key: string; incarnation: string }>(
    "SELECT table_schema AS schema, table_name AS name, key, incarnation FROM kindstack_ownership.rows WHERE owner = $1",
    [uid],
  );
  return rows.map(({ schema, name, ...record }) => ({ location: { schema, name }, ...record }));
}

/** The owner of a row; `undefined` when it has none, or no row in this database ever had one. */
export async function findRecord(
  connection: Connection,
  { schema, name }: TableLocation,
  row: Pick<RowInputs, "key">,
): Promise<OwnershipRecord | undefined> {
  if (!(await hasRecords(connection))) return undefined;
  const { rows } = await connection.query<OwnershipRecord>(
    "SELECT owner, description, incarnation FROM kindstack_ownership.rows WHERE table_schema = $1 AND table_name = $2 AND key = $3",
    [schema, name, keyOf(row).value],
  );
  return rows[0];
}

async function hasRecords(connection: Connection): Promise<boolean> {
  const { rows } = await connection.query<{ exists: boolean }>(
    "SELECT to_regclass('kindstack_ownership.rows') IS NOT NULL AS exists",
  );
  return rows[0]?.exists === true;
}
