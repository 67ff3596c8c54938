import { escapeIdentifier } from "pg";
import { ClassifiedError, errorMessageOf, RetryableError } from "../errors";
import type { Fence } from "../fence";
import { LOCK_TIMEOUT_MS } from "./configuration";
import { isAboutTable, sqlStateOf } from "./errors";
import { formatTableName, quoteTableName, type TableName } from "./identifier";
import { type Connection, type Work, withReadTransaction, withTransaction } from "./pool";
import type { RowKey } from "./row-inputs";

/*
 * Another session's lock must not delay an update: a statement that waits for it fails soon, and later statements on
 * the same table fail at once. A retry checks the lock again.
 */

/** How long, in ms, a refused lock also refuses other statements on the table; the first retry waits as long. */
const MOMENT_MS = 1_000;
/** How long, in ms, rows wait after a recent time-out on a row: an update may have many rows that are locked. */
const SHORT_LOCK_TIMEOUT_MS = 50;

const LOCK_TIMEOUT = "55P03";
const STATEMENT_TIMEOUT = "57014";
/** The modes that conflict with a write, and with a read the last one. */
const WHOLE_TABLE = ["ShareLock", "ShareRowExclusiveLock", "ExclusiveLock", "AccessExclusiveLock"];

/** The whole table is locked: for a moment, every other statement on it would time out as well. */
export class TableUnavailableError extends RetryableError {}

/** By table: the last time-out, and until when it counts, by `performance.now()`. */
const refusals = new Map<string, { error: RetryableError; until: number }>();

function recentRefusal(table: TableName): RetryableError | undefined {
  const refusal = refusals.get(quoteTableName(table));
  return refusal !== undefined && performance.now() < refusal.until ? refusal.error : undefined;
}

export function lockTimeoutMs(table: TableName): number {
  return recentRefusal(table) === undefined ? LOCK_TIMEOUT_MS : SHORT_LOCK_TIMEOUT_MS;
}

/**
 * Runs `work` on a connection, for one table.
 *
 * @param row the row to lock, if the work concerns one row
 * @throws TableUnavailableError `LockTimeout`, naming who holds the table, or `StatementTimeout`; at once when it was
 *   thrown for this table a moment ago. RetryableError `LockTimeout` when only rows are locked
 */
export async function withTable<T>(
  table: TableName,
  open: (work: Work<T>) => Promise<T>,
  work: Work<T>,
  row?: RowKey,
): Promise<T> {
  try {
    return await open(async (connection) => {
      // Others may have waited for the table while this waited for a connection.
      const refusal = recentRefusal(table);
      if (refusal instanceof TableUnavailableError) throw refusal;
      return work(connection);
    });
  } catch (error) {
    const state = sqlStateOf(error);
    if (error instanceof ClassifiedError && isAboutTable(error)) error.dependency = dependencyOn(table);
    if (error instanceof TableUnavailableError || !(state === LOCK_TIMEOUT || state === STATEMENT_TIMEOUT)) throw error;
    const refusal = state === LOCK_TIMEOUT ? await explainLock(table, row, error) : slowStatement(table, error);
    refusals.set(quoteTableName(table), { error: refusal, until: performance.now() + MOMENT_MS });
    throw refusal;
  }
}

function slowStatement(table: TableName, cause: unknown): TableUnavailableError {
  const message = `${errorMessageOf(cause)}: a statement on table ${formatTableName(table)} took too long`;
  return new TableUnavailableError("StatementTimeout", message, { cause, dependency: dependencyOn(table) });
}

async function explainLock(table: TableName, row: RowKey | undefined, cause: unknown): Promise<RetryableError> {
  const lock = await findTableLock(table).catch(() => undefined);
  if (lock !== undefined) {
    return new TableUnavailableError("LockTimeout", lock, { cause, dependency: dependencyOn(table) });
  }
  const holder = row && (await findRowLock(table, row).catch(() => undefined));
  const what = row === undefined ? "rows" : `row ${JSON.stringify(row.value)}`;
  const message = `${what} of table ${formatTableName(table)}: locked by ${holder ?? "another transaction"}`;
  return new RetryableError("LockTimeout", message, { cause });
}

function dependencyOn(table: TableName): string {
  return `table ${formatTableName(table)}`;
}

interface Session {
  pid: number | null;
  application: string | null;
  user: string | null;
}

/**
 * Who keeps others from the table, or from the records of ownership; also who waits to do so, as DDL does. The server's own processes
 * have no user: autovacuum, which gives way, and whose lock is no reason of a time-out.
 */
function findTableLock(table: TableName): Promise<string | undefined> {
  return withReadTransaction(async (connection) => {
    const { rows } = await connection.query<Session & { relation: string; granted: boolean }>(
      `SELECT relation::regclass::text AS relation, granted, pid, application_name AS application, usename AS "user"
       FROM pg_locks LEFT JOIN pg_stat_activity USING (pid)
       WHERE locktype = 'relation' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
         AND relation IN (to_regclass($1), to_regclass('kindstack_ownership.records')) AND mode = ANY($2)
         AND (pid IS NULL OR usesysid IS NOT NULL)
       ORDER BY granted DESC LIMIT 1`,
      [quoteTableName(table), WHOLE_TABLE],
    );
    const [lock] = rows;
    if (lock === undefined) return undefined;
    return `table ${lock.relation} is locked by ${describe(lock)}${lock.granted ? "" : ", which waits for others"}`;
  });
}

function findRowLock(table: TableName, { column, value }: RowKey) {
  return withReadTransaction(async (connection) => {
    const { rows } = await connection.query<Session>(
      `SELECT pid, application_name AS application, usename AS "user"
       FROM ${quoteTableName(table)} AS locked
       JOIN pg_locks ON locktype = 'transactionid' AND transactionid = locked.xmax AND granted
       LEFT JOIN pg_stat_activity USING (pid)
       WHERE locked.${escapeIdentifier(column)} = $1 LIMIT 1`,
      [value],
    );
    return rows[0] && describe(rows[0]);
  });
}

/** `process 4711 (application "psql", user "admin")` */
function describe({ pid, application, user }: Session): string {
  if (pid === null) return "a prepared transaction";
  const facts = [application && `application ${JSON.stringify(application)}`, user && `user ${JSON.stringify(user)}`];
  const known = facts.filter(Boolean).join(", ");
  return known === "" ? `process ${pid}` : `process ${pid} (${known})`;
}

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
 * @throws RetryableError `OwnershipTableMissing` with the SQL for an administrator when they may not be created
 */
export async function withOwnershipRecords<T>(
  fence: Fence | undefined,
  work: Work<T>,
  beforeCreation: Work<void>,
  lockTimeoutMs: number,
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
    const sql = await withReadTransaction(creationSql);
    throw new RetryableError(
      "OwnershipTableMissing",
      `${errorMessageOf(error)}: Kindstack may not create its tables of row owners; an administrator must run: ${sql}`,
      { cause: error, dependency: "table kindstack_ownership.records" },
    );
  }
}

/** What an administrator runs where Kindstack has not created its tables; the connection's role gets the rights to use them. */
export async function creationSql(connection: Connection): Promise<string> {
  const { rows } = await connection.query<{ role: string }>("SELECT quote_ident(current_user) AS role");
  const { role = "" } = rows[0] ?? {};
  return (
    `${[CREATE_SCHEMA, ...CREATE_ALL].join("; ").replace(/\s+/g, " ")}; ` +
    `GRANT USAGE ON SCHEMA kindstack_ownership TO ${role}; ` +
    `GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA kindstack_ownership TO ${role};`
  );
}
