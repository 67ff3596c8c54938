import { escapeIdentifier } from "pg";
import { ClassifiedError, errorMessageOf, RetryableError } from "../errors";
import { LOCK_TIMEOUT_MS } from "./configuration";
import { isAboutTable, sqlStateOf } from "./errors";
import { formatTableName, quoteTableName, type TableName } from "./identifier";
import { type Work, withReadTransaction } from "./pool";
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

/** How long a transaction on this table should wait for a lock. */
export function lockTimeoutMs(table: TableName): number {
  return recentRefusal(table) === undefined ? LOCK_TIMEOUT_MS : SHORT_LOCK_TIMEOUT_MS;
}

/**
 * Runs `work` on a connection, for one table.
 *
 * @param open opens the connection, or the transaction
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

/** Who keeps others from the table, or from the records of ownership; also who waits to do so, as DDL does. */
function findTableLock(table: TableName): Promise<string | undefined> {
  return withReadTransaction(async (connection) => {
    const { rows } = await connection.query<Session & { relation: string; granted: boolean }>(
      `SELECT relation::regclass::text AS relation, granted, pid, application_name AS application, usename AS "user"
       FROM pg_locks LEFT JOIN pg_stat_activity USING (pid)
       WHERE locktype = 'relation' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
         AND relation IN (to_regclass($1), to_regclass('kindstack_ownership.records')) AND mode = ANY($2)
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
