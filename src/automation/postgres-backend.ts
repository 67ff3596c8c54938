import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { Client, escapeIdentifier, type QueryResultRow } from "pg";
import { RetryableError } from "../../providers/errors";
import { checkFence } from "../../providers/fence";
import { sqlStateOf } from "../../providers/postgres/errors";
import { type Backend, HISTORY_LIMIT, type OnState, type ReadableStack, readEach, stackPaths } from "./backend";
import { CommandBackend } from "./command-backend";
import type { PulumiOptions, Workspace } from "./pulumi";
import { withScratch } from "./scratch";
import { type StackState, stateOf } from "./stack-state";

/** The table of a `postgres://` backend whose URL names none. */
const DEFAULT_TABLE = "pulumi_state";
/** A database that is slow may be; one that does not answer holds up other objects. */
const ANSWER_TIMEOUT_MS = 30_000;
const UNDEFINED_TABLE = "42P01";

/** Runs a statement. The result is empty where the table does not exist, as the CLI makes it with the first stack. */
type Query = <Row extends QueryResultRow>(statement: string, values?: unknown[]) => Promise<Row[]>;

/** A file of the backend: its content is in base64. */
interface FileRow {
  key: string;
  data: string;
}
const FILE = "key, data->>'data' AS data";

/** Pulumi's `postgres://` backend: its table is read and tidied directly; a state is written by commands alone. */
export class PostgresBackend extends CommandBackend {
  override readonly isDirect = true;
  readonly #workspace: Workspace;

  constructor(options: PulumiOptions) {
    super(options);
    this.#workspace = options.workspace;
  }

  override state(stack: string): Promise<StackState | undefined> {
    return this.#connect((query, table) => this.#reading(query, table).state(stack));
  }

  override names(): Promise<string[]> {
    return this.#connect((query, table) => this.#reading(query, table).names());
  }

  readAll(onState: OnState): Promise<void> {
    return this.#connect(async (query, table) => {
      await query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
      await readEach(this.#reading(query, table), onState);
      await query("COMMIT");
    });
  }

  /** Removes also the backup that the CLI makes of a state. */
  override async remove(stack: string): Promise<void> {
    const { checkpoint, history, locks } = this.#layout(stack);
    await this.#connect((query, table) => {
      checkFence();
      return query(
        `DELETE FROM ${table} WHERE key IN ($1, $1 || '.gz', $1 || '.bak', $1 || '.gz.bak') OR key LIKE $2 OR key LIKE $3`,
        [checkpoint, likeAllIn(history), likeAllIn(locks)],
      );
    });
  }

  async cutHistory(stack: string): Promise<void> {
    await this.#connect((query, table) => {
      checkFence();
      return query(
        `WITH updates AS (
           SELECT key, substring(key FROM '-(\\d+)\\.(?:history|checkpoint)\\.json')::numeric AS time
           FROM ${table} WHERE key LIKE $1
         ), kept AS (
           SELECT DISTINCT time FROM updates WHERE time IS NOT NULL ORDER BY time DESC LIMIT $2
         )
         DELETE FROM ${table} WHERE key IN (SELECT key FROM updates WHERE time < (SELECT min(time) FROM kept))`,
        [likeAllIn(this.#layout(stack).history), HISTORY_LIMIT],
      );
    });
  }

  /**
   * Shows a copy in a directory. The CLI itself cannot be used to look at such a backend without the right to write: it
   * begins by making its table, even where there is one.
   */
  override look<T>(
    stack: string,
    what: "checkpoint" | "history",
    read: (stack: ReadableStack) => Promise<T>,
  ): Promise<T | undefined> {
    const { checkpoint, history } = this.#layout(stack);
    return withScratch(this.#workspace.scratchDirectory, "copy", async (scratch) => {
      const directory = join(scratch, ".pulumi");
      const rows = await this.#connect((query, table) =>
        query<FileRow>(`SELECT ${FILE} FROM ${table} WHERE key IN ($1, $1 || '.gz') OR $3 AND key LIKE $2`, [
          checkpoint,
          likeAllIn(history),
          what === "history",
        ]),
      );
      if (!rows.some(({ key }) => key.startsWith(checkpoint))) return undefined;
      for (const row of rows) {
        const path = join(directory, row.key.slice(this.#root.length));
        await mkdir(dirname(path), { recursive: true });
        await writeFile(path, bytesOf(row), { mode: 0o600 });
      }
      return read({ directory, backendUrl: pathToFileURL(scratch).href });
    });
  }

  #reading(query: Query, table: string): Pick<Backend, "state" | "names"> {
    return {
      state: async (stack) => {
        const statement = `SELECT ${FILE} FROM ${table} WHERE key IN ($1, $1 || '.gz')`;
        const [row] = await query<FileRow>(statement, [this.#layout(stack).checkpoint]);
        return row && stateOf(bytesOf(row));
      },
      names: async () => {
        const { stacks } = this.#layout();
        const statement = `SELECT key FROM ${table} WHERE key LIKE $1 AND key ~ '[.]json([.]gz)?$'`;
        const rows = await query<FileRow>(statement, [likeAllIn(stacks)]);
        return rows.map(({ key }) => key.slice(stacks.length + 1).replace(/\.json(\.gz)?$/, ""));
      },
    };
  }

  get #root(): string {
    return `${decodeURIComponent(new URL(this.#workspace.backendUrl).pathname.slice(1))}/.pulumi`;
  }

  #layout(stack?: string) {
    return stackPaths(this.#root, stack);
  }

  /** @throws RetryableError when the database cannot be reached */
  async #connect<T>(work: (query: Query, table: string) => Promise<T>): Promise<T> {
    const url = new URL(this.#workspace.backendUrl);
    const table = url.searchParams.get("table") ?? DEFAULT_TABLE;
    url.searchParams.delete("table");
    // `sslmode` as the CLI's own driver understands it.
    if (url.searchParams.has("sslmode")) url.searchParams.set("uselibpqcompat", "true");
    const client = new Client({
      connectionString: url.href,
      connectionTimeoutMillis: ANSWER_TIMEOUT_MS,
      query_timeout: ANSWER_TIMEOUT_MS,
    });
    await client.connect().catch((error: NodeJS.ErrnoException) => {
      const message = `cannot connect to the state database: ${error.message || error.code}`;
      throw new RetryableError("Unreadable", message, { cause: error });
    });
    const query: Query = async <Row extends QueryResultRow>(statement: string, values: unknown[] = []) => {
      try {
        return (await client.query<Row>(statement, values)).rows;
      } catch (error) {
        if (sqlStateOf(error) === UNDEFINED_TABLE) return [];
        throw error;
      }
    };
    try {
      return await work(query, table.split(".").map(escapeIdentifier).join("."));
    } finally {
      await client.end();
    }
  }
}

function bytesOf({ data }: FileRow): Buffer {
  return Buffer.from(data, "base64");
}

/** For LIKE, for which the CLI has made an index: all keys in this folder. */
function likeAllIn(folder: string): string {
  return `${folder.replace(/[\\%_]/g, "\\$&")}/%`;
}
