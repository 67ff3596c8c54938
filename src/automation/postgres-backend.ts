import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { gunzipSync } from "node:zlib";
import { Client } from "pg";
import { RetryableError } from "../../providers/errors";
import { checkFence } from "../../providers/fence";
import { quoteIdentifier } from "../../providers/postgres/identifier";
import { HISTORY_LIMIT } from "./file-backend";
import { PROJECT } from "./project";

/** The table of a `postgres://` backend whose URL names none. */
const DEFAULT_TABLE = "pulumi_state";
/** A database that is slow may be; one that does not answer holds up the turns of objects. */
const ANSWER_TIMEOUT_MS = 30_000;

/**
 * Copies a stack from a `postgres://` backend to a `file://` one. The CLI itself cannot be used to look at such a
 * backend without the right to write: it begins by making its table, even where there is one.
 *
 * @param directory the `.pulumi` of the file backend
 * @param what `checkpoint`: the stack's state; `history`: its updates, with their checkpoints, as well
 * @returns whether there is such a stack
 * @throws RetryableError when the database cannot be reached
 */
export async function copyStack(
  backendUrl: string,
  directory: string,
  stack: string,
  what: "checkpoint" | "history",
): Promise<boolean> {
  const { root, checkpoint, history } = keysOf(backendUrl, stack);
  return withTable(backendUrl, async (client, table) => {
    const { rows } = await client.query<{ key: string; data: string }>(
      `SELECT key, data->>'data' AS data FROM ${table}
       WHERE key IN ($1, $1 || '.gz') OR $3 AND key LIKE $2 `,
      [checkpoint, likeAllOf(history), what === "history"],
    );
    for (const { key, data } of rows) {
      const path = join(directory, key.slice(root.length));
      await mkdir(dirname(path), { recursive: true });
      await writeFile(path, Buffer.from(data, "base64"), { mode: 0o600 });
    }
    return rows.some(({ key }) => key.startsWith(checkpoint));
  });
}

/**
 * The names of the stacks that begin like this.
 *
 * @throws RetryableError when the database cannot be reached
 */
export async function listStackRows(backendUrl: string, start: string): Promise<string[]> {
  const { stacks: folder } = keysOf(backendUrl, "");
  return withTable(backendUrl, async (client, table) => {
    const { rows } = await client.query<{ key: string }>(
      `SELECT key FROM ${table} WHERE key LIKE $1 AND key LIKE '%.json'`,
      [likeAllOf(folder + start)],
    );
    return rows.map(({ key }) => key.slice(folder.length, -".json".length));
  });
}

/**
 * The checkpoints of all stacks of a project, all of one moment.
 *
 * @throws RetryableError when the database cannot be reached
 */
export async function readCheckpoints(
  backendUrl: string,
  onCheckpoint: (name: string, text: string) => Promise<void>,
): Promise<void> {
  const { stacks: folder } = keysOf(backendUrl, "");
  await withTable(backendUrl, async (client, table) => {
    await client.query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
    const { rows } = await client.query<{ key: string }>(
      `SELECT key FROM ${table} WHERE key LIKE $1 AND key ~ '[.]json([.]gz)?$' ORDER BY key`,
      [likeAllOf(folder)],
    );
    for (const { key } of rows) {
      const found = await client.query<{ data: string }>(`SELECT data->>'data' AS data FROM ${table} WHERE key = $1`, [
        key,
      ]);
      const bytes = Buffer.from(found.rows[0]?.data ?? "", "base64");
      const text = (key.endsWith(".gz") ? gunzipSync(bytes) : bytes).toString("utf8");
      await onCheckpoint(key.slice(folder.length).replace(/\.json(\.gz)?$/, ""), text);
    }
    await client.query("COMMIT");
  });
}

/**
 * Removes all but the newest updates from a stack's history. Each holds the whole state, and the CLI never removes one.
 *
 * @throws RetryableError when the database cannot be reached, or the fence has come down
 */
export async function cutHistory(backendUrl: string, stack: string): Promise<void> {
  const { history } = keysOf(backendUrl, stack);
  await withTable(backendUrl, async (client, table) => {
    checkFence();
    await client.query(
      `WITH updates AS (
         SELECT key, substring(key FROM '-(\\d+)\\.(?:history|checkpoint)\\.json')::numeric AS time
         FROM ${table} WHERE key LIKE $1
       ), kept AS (
         SELECT DISTINCT time FROM updates WHERE time IS NOT NULL ORDER BY time DESC LIMIT $2
       )
       DELETE FROM ${table} WHERE key IN (SELECT key FROM updates WHERE time < (SELECT min(time) FROM kept))`,
      [likeAllOf(history), HISTORY_LIMIT],
    );
  });
}

/**
 * Removes a stack: its state, the backup that the CLI makes of one, its history, and the lock of a CLI that was killed.
 *
 * @throws RetryableError when the database cannot be reached, or the fence has come down
 */
export async function removeStackRows(backendUrl: string, stack: string): Promise<void> {
  const { checkpoint, history, locks } = keysOf(backendUrl, stack);
  await withTable(backendUrl, async (client, table) => {
    checkFence();
    await client.query(
      `DELETE FROM ${table} WHERE key IN ($1, $1 || '.gz', $1 || '.bak', $1 || '.gz.bak') OR key LIKE $2 OR key LIKE $3`,
      [checkpoint, likeAllOf(history), likeAllOf(locks)],
    );
  });
}

/** For LIKE, for which the CLI has made an index: all keys that begin with this. */
function likeAllOf(start: string): string {
  return `${start.replace(/[\\%_]/g, "\\$&")}%`;
}

/** What the keys of everything begin with, of all states, of a stack's history and of its locks; and the key of its state. */
function keysOf(backendUrl: string, stack: string) {
  const root = `${decodeURIComponent(new URL(backendUrl).pathname.slice(1))}/.pulumi/`;
  const stacks = `${root}stacks/${PROJECT}/`;
  return {
    root,
    stacks,
    checkpoint: `${stacks}${stack}.json`,
    history: `${root}history/${PROJECT}/${stack}/`,
    locks: `${root}locks/organization/${PROJECT}/${stack}/`,
  };
}

/** @throws RetryableError when the database cannot be reached */
async function withTable<T>(backendUrl: string, work: (client: Client, table: string) => Promise<T>): Promise<T> {
  const url = new URL(backendUrl);
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
  try {
    return await work(client, table.split(".").map(quoteIdentifier).join("."));
  } finally {
    await client.end();
  }
}
