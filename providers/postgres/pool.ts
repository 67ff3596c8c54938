import { type ClientBase, Pool, type PoolClient, type QueryResult, type QueryResultRow } from "pg";
import { type ClassifiedError, errorMessageOf, RetryableError } from "../errors";
import type { Fence } from "../fence";
import { LOCK_TIMEOUT_MS, type PoolSettings, poolSettings, READ_TIMEOUT_MS } from "./configuration";
import { classifyConnectError, classifyStatementError, sqlStateOf } from "./errors";
import { allowPrepared, forbidPrepared, isOutdatedStatement, preparedName } from "./prepared";

/** The process's pools, one for each host; none has a connection before it is needed. */
interface Pools {
  /** The settings that they were opened with. */
  settings: string;
  /** Until when these are taken to hold, by `performance.now()`. */
  freshUntilMs: number;
  all: readonly { pool: Pool; name: string }[];
  /** The one that had a connection last, by its index. */
  preferred: number;
}

let pools: Pools | undefined;

/** One connection of a pool; its errors are classified. */
export class Connection {
  readonly #client: PoolClient;
  readonly #fence: Fence | undefined;
  /** The transaction's begin, which the first statement does not wait for. */
  #begun: Promise<unknown> | undefined;
  /**
   * Whether the last statement succeeded. An error of the server is no sign of life: it may be that it ends the session. And one
   * that may not be sent, by the fence, leaves a transaction open.
   */
  isHealthy = true;
  /** Whether the server takes no writes: after a failover, a new connection reaches another one. */
  isReadOnly = false;

  constructor(client: PoolClient, fence: Fence | undefined) {
    this.#client = client;
    this.#fence = fence;
  }

  /** Begins a transaction, together with the next statement, which fails as this does: it saves a round trip. */
  begin(text: string): void {
    this.#fence?.check();
    this.#begun = this.#client.query(text);
    this.#begun.catch(() => undefined);
  }

  /** Statements that do not need each other's results may be asked side by side; they run in the order of the calls. */
  async query<R extends QueryResultRow>(text: string, values: unknown[] = []): Promise<QueryResult<R>> {
    try {
      this.#fence?.check();
      const name = values.length > 0 ? preparedName(this.#client, text) : undefined;
      const [result] = await Promise.all([this.#client.query<R>({ name, text, values }), this.#begun]);
      this.isHealthy = true;
      return result;
    } catch (error) {
      this.isHealthy = false;
      this.isReadOnly ||= sqlStateOf(error) === "25006";
      if (isOutdatedStatement(error)) forbidPrepared(this.#client);
      throw classifyStatementError(error);
    }
  }
}

export type Work<T> = (connection: Connection) => Promise<T>;

/** When the fence of the work ends, so does the connection: a COMMIT that is on its way must not arrive later. */
async function withConnection<T>(fence: Fence | undefined, work: Work<T>, { prepares = true } = {}): Promise<T> {
  const client = await connect();
  if (!prepares) forbidPrepared(client);
  const connection = new Connection(client, fence);
  const signal = fence?.signal;
  const hangUp = () => client.connection.stream.destroy(); // its own `end` waits for the answers to what was sent
  signal?.addEventListener("abort", hangUp);
  try {
    return await work(connection);
  } finally {
    signal?.removeEventListener("abort", hangUp);
    client.release(!connection.isHealthy || connection.isReadOnly || signal?.aborted === true);
    if (connection.isReadOnly) void closePool();
  }
}

const WRITE_TIMEOUT_MS = 5_000;
const SETTINGS_FRESH_MS = 500;

/**
 * Runs `work` in one transaction: all of it takes effect or, when it throws, nothing.
 *
 * @param lockTimeoutMs how long each statement waits for another session's lock
 * @throws ClassifiedError with the database's own words; TerminalError `PostgresNotConfigured`
 */
export function withTransaction<T>(
  fence: Fence | undefined,
  work: Work<T>,
  lockTimeoutMs = LOCK_TIMEOUT_MS,
): Promise<T> {
  // What is deferred would run in COMMIT, after the rows were read back, and without a time-out.
  return transaction(fence, "", WRITE_TIMEOUT_MS, lockTimeoutMs, work, "; SET CONSTRAINTS ALL IMMEDIATE");
}

/** The same for what only reads, which needs no fence. */
export function withReadTransaction<T>(work: Work<T>): Promise<T> {
  return transaction(undefined, "READ ONLY", READ_TIMEOUT_MS, LOCK_TIMEOUT_MS, work);
}

/**
 * Time-outs are settings of the transaction: poolers such as PgBouncer refuse them when a connection is opened, and hand out
 * another connection for each transaction. Where a prepared statement is outdated, all is done again without any.
 */
async function transaction<T>(
  fence: Fence | undefined,
  mode: "" | "READ ONLY",
  statementTimeoutMs: number,
  lockTimeoutMs: number,
  work: Work<T>,
  settings = "",
): Promise<T> {
  const inTransaction = async (connection: Connection) => {
    connection.begin(
      `BEGIN ISOLATION LEVEL READ COMMITTED ${mode};
       SET LOCAL lock_timeout = ${lockTimeoutMs}; SET LOCAL statement_timeout = ${statementTimeoutMs}${settings}`,
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
  };
  try {
    return await withConnection(fence, inTransaction);
  } catch (error) {
    if (!isOutdatedStatement(error)) throw error;
    return await withConnection(fence, inTransaction, { prepares: false });
  }
}

/** Closes the connections after the statements that are running; the next use opens new ones. */
export async function closePool(): Promise<void> {
  const closing = pools;
  pools = undefined;
  await Promise.all(closing?.all.map(({ pool }) => pool.end()) ?? []);
}

/** A connection to the last used host, or else to the next host that accepts it. */
async function connect(): Promise<PoolClient> {
  const current = currentPools();
  const failures: { error: ClassifiedError; name: string }[] = [];
  const first = current.preferred;
  for (let tried = 0; tried < current.all.length; tried++) {
    const index = (first + tried) % current.all.length;
    const { pool, name } = current.all[index] as Pools["all"][number];
    try {
      const client = await pool.connect();
      current.preferred = index;
      return client;
    } catch (error) {
      current.freshUntilMs = 0; // the password may be another one by now
      failures.push({ error: classifyConnectError(error), name });
    }
  }
  // A pool that was closed meanwhile, for other settings, serves none of those who wait.
  if (pools !== undefined && pools !== current) return connect();
  const [{ error }] = failures as [(typeof failures)[number]];
  if (failures.length === 1) throw error;
  const all = failures.map(({ error, name }) => `${name}: ${errorMessageOf(error)}`).join("; ");
  const { reason, cause, dependency } = error;
  throw new RetryableError(reason, `no host takes writes: ${all}`, { cause, dependency });
}

/**
 * Settings are read again and again: passwords, tokens and certificates are rotated while the process runs. Not at each use,
 * as that takes longer than the statements of a row.
 */
function currentPools(): Pools {
  const now = performance.now();
  if (pools !== undefined && now < pools.freshUntilMs) return pools;
  const hosts = poolSettings(process.env);
  const settings = JSON.stringify(hosts, (_, value) => (typeof value === "function" ? value.name : value));
  if (pools?.settings !== settings) {
    void closePool(); // those of former settings
    pools = {
      settings,
      freshUntilMs: 0,
      all: hosts.map((host) => ({ pool: openPool(host, hosts.length > 1), name: `${host.host}:${host.port}` })),
      preferred: 0,
    };
  }
  pools.freshUntilMs = now + SETTINGS_FRESH_MS;
  return pools;
}

function openPool(settings: PoolSettings, isOneOfSeveral: boolean): Pool {
  const onConnect = async (client: ClientBase) => {
    if (isOneOfSeveral) await refuseReadOnly(client);
    await allowPrepared(client);
  };
  const opened = new Pool({ ...settings, onConnect });
  // A connection that breaks between two statements, idle or in a transaction, is dropped by the pool or reported by
  // the next statement; as an event without a listener, its error would end the process.
  opened.on("error", () => undefined);
  opened.on("connect", (client) => client.on("error", () => undefined));
  return opened;
}

async function refuseReadOnly(client: ClientBase): Promise<void> {
  const { rows } = await client.query(
    "SELECT pg_is_in_recovery() OR current_setting('default_transaction_read_only')::boolean AS refuses",
  );
  if (rows[0]?.refuses === true) throw new RetryableError("DatabaseReadOnly", "it is read-only");
}
