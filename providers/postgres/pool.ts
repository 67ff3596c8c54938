import { Pool, type PoolClient, type QueryResult, type QueryResultRow } from "pg";
import { checkFence, currentFence } from "../fence";
import { LOCK_TIMEOUT_MS, poolConfig } from "./configuration";
import { classifyConnectError, classifyStatementError, sqlStateOf } from "./errors";

let pool: Pool | undefined;

/** One connection of the pool; its errors are classified. */
export class Connection {
  readonly #client: PoolClient;
  /** Whether the last statement succeeded. An error of the server is no sign of life: it may be that it ends the session. */
  isHealthy = true;

  constructor(client: PoolClient) {
    this.#client = client;
  }

  async query<R extends QueryResultRow>(text: string, values: unknown[] = []): Promise<QueryResult<R>> {
    checkFence();
    try {
      const result = await this.#client.query<R>(text, values);
      this.isHealthy = true;
      return result;
    } catch (error) {
      this.isHealthy = false;
      throw classifyStatementError(error);
    }
  }
}

/**
 * Runs `work` on a connection of the process's one pool, which is made when it is first needed. When the fence of the
 * work ends, so does the connection: what still is on its way to the server, a COMMIT for one, must not arrive later.
 *
 * @throws ClassifiedError with the database's own words; TerminalError `PostgresNotConfigured`
 */
export async function withConnection<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
  const client = await connect();
  const connection = new Connection(client);
  const signal = currentFence()?.signal;
  const hangUp = () => void client.end().catch(() => undefined);
  signal?.addEventListener("abort", hangUp);
  try {
    return await work(connection);
  } finally {
    signal?.removeEventListener("abort", hangUp);
    client.release(!connection.isHealthy || signal?.aborted === true);
  }
}

const STATEMENT_TIMEOUT_MS = 5_000;

/**
 * Runs `work` in one transaction: all of it takes effect or, when it throws, nothing.
 *
 * @param lockTimeoutMs how long each statement waits for another session's lock
 */
export function withTransaction<T>(
  work: (connection: Connection) => Promise<T>,
  lockTimeoutMs = LOCK_TIMEOUT_MS,
): Promise<T> {
  return withConnection(async (connection) => {
    await connection.query(
      `BEGIN ISOLATION LEVEL READ COMMITTED;
       SET LOCAL lock_timeout = ${lockTimeoutMs}; SET LOCAL statement_timeout = ${STATEMENT_TIMEOUT_MS}`,
    );
    try {
      const result = await work(connection);
      await connection.query("COMMIT");
      return result;
    } catch (error) {
      // Where the server does not answer, the connection is closed, and that rolls back as well.
      const isAnswered = connection.isHealthy || sqlStateOf(error) !== undefined;
      if (isAnswered) await connection.query("ROLLBACK").catch(() => undefined);
      throw error;
    }
  });
}

/** Closes the pool's connections after the statements that are running; the next use makes a new pool. */
export async function closePool(): Promise<void> {
  const closing = pool;
  pool = undefined;
  await closing?.end();
}

async function connect(): Promise<PoolClient> {
  pool ??= openPool();
  try {
    return await pool.connect();
  } catch (error) {
    throw classifyConnectError(error);
  }
}

function openPool(): Pool {
  const opened = new Pool(poolConfig(process.env));
  // A connection that breaks between two statements, idle or in a transaction, is dropped by the pool or reported by
  // the next statement; as an event without a listener, its error would end the process.
  opened.on("error", () => undefined);
  opened.on("connect", (client) => client.on("error", () => undefined));
  return opened;
}
