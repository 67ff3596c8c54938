import { errorMessageOf, RetryableError } from "../errors";
import type { Fence } from "../fence";
import { sqlStateOf } from "./errors";
import { type Connection, type Work, withReadTransaction, withTransaction } from "./pool";

/*
 * The tables of who owns which row. A row cannot carry a label of its owner, as its columns are the user's; so it has a
 * record in a table of Kindstack's own, written in the same transaction as the row. Its schema must not have a name that a
 * role might have: PostgreSQL looks for tables first in the schema that is called like the user.
 */

const CREATE_SCHEMA = "CREATE SCHEMA IF NOT EXISTS kindstack_ownership";
/** The tables of users that have recorded rows: by identity, and by the name that they had last. */
const CREATE_TABLES = `CREATE TABLE IF NOT EXISTS kindstack_ownership.tables (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  server text NOT NULL,
  oid oid NOT NULL,
  table_schema text NOT NULL,
  table_name text NOT NULL,
  UNIQUE (server, oid)
)`;
const CREATE_RECORDS = `CREATE TABLE IF NOT EXISTS kindstack_ownership.records (
  table_id bigint NOT NULL,
  key text NOT NULL,
  owner text NOT NULL,
  description text NOT NULL,
  cluster text,
  cluster_uid text,
  former_cluster_uids text[] NOT NULL DEFAULT '{}',
  incarnation text NOT NULL,
  PRIMARY KEY (table_id, key)
)`;
/** After a crash, each object whose update was cut off is asked for what it has. */
const CREATE_OWNER_INDEX = "CREATE INDEX IF NOT EXISTS records_by_owner ON kindstack_ownership.records (owner)";
/** A renamed table's rows are found by their incarnations. */
const CREATE_INCARNATION_INDEX =
  "CREATE INDEX IF NOT EXISTS records_by_incarnation ON kindstack_ownership.records (incarnation)";
const CREATE_ALL = [CREATE_TABLES, CREATE_RECORDS, CREATE_OWNER_INDEX, CREATE_INCARNATION_INDEX];

/** An advisory lock's number: it keeps two operators from creating the tables at the same moment. */
const CREATION_LOCK = 7_046_029_254_386_353n;
/** Others hold the lock only while they create the tables, for a few statements. */
const CREATION_LOCK_TIMEOUT_MS = 5_000;

/**
 * Runs `work` in a transaction in which the ownership records can be used; the first use in a database creates their
 * tables.
 *
 * @param beforeCreation looks at a database without records, and throws where none are to be created
 * @param fence see {@link withTransaction}
 * @param lockTimeoutMs see {@link withTransaction}
 * @throws RetryableError `OwnershipTableMissing` with the SQL for an administrator when they may not be created
 */
export async function withOwnershipRecords<T>(
  fence: Fence | undefined,
  work: Work<T>,
  beforeCreation: Work<void>,
  lockTimeoutMs?: number,
): Promise<T> {
  try {
    return await withTransaction(fence, work, lockTimeoutMs);
  } catch (error) {
    // The message comes in the server's language, the name in it does not.
    const isMissing = sqlStateOf(error) === "42P01" && errorMessageOf(error).includes('"kindstack_ownership.');
    if (!isMissing) throw error;
    await withReadTransaction(beforeCreation);
    await createTables(fence);
    return withTransaction(fence, work, lockTimeoutMs);
  }
}

/** Whether there are records in this database. */
export async function hasRecords(connection: Connection): Promise<boolean> {
  const { rows } = await connection.query<{ exists: boolean }>(
    "SELECT to_regclass('kindstack_ownership.records') IS NOT NULL AS exists",
  );
  return rows[0]?.exists === true;
}

async function createTables(fence: Fence | undefined): Promise<void> {
  try {
    await withTransaction(
      fence,
      async (connection) => {
        await connection.query("SELECT pg_advisory_xact_lock($1)", [CREATION_LOCK]);
        const { rows } = await connection.query<{ exists: boolean }>(
          "SELECT to_regnamespace('kindstack_ownership') IS NOT NULL AS exists",
        );
        // Even IF NOT EXISTS asks for the permission to create a schema.
        if (!rows[0]?.exists) await connection.query(CREATE_SCHEMA);
        for (const statement of CREATE_ALL) await connection.query(statement);
      },
      CREATION_LOCK_TIMEOUT_MS,
    );
  } catch (error) {
    if (sqlStateOf(error) !== "42501") throw error;
    const user = await withReadTransaction((connection) =>
      connection.query<{ name: string }>("SELECT quote_ident(current_user) AS name"),
    );
    throw new RetryableError(
      "OwnershipTableMissing",
      `${errorMessageOf(error)}: Kindstack may not create its tables of row owners; an administrator must run: ` +
        creationSql(user.rows[0]?.name ?? ""),
      { cause: error, dependency: "table kindstack_ownership.records" },
    );
  }
}

/**
 * What an administrator runs where Kindstack may not create its tables.
 *
 * @param role quoted
 */
export function creationSql(role: string): string {
  return (
    `${[CREATE_SCHEMA, ...CREATE_ALL].join("; ").replace(/\s+/g, " ")}; ` +
    `GRANT USAGE ON SCHEMA kindstack_ownership TO ${role}; ` +
    `GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA kindstack_ownership TO ${role};`
  );
}
