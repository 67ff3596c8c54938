import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { gunzipSync } from "node:zlib";
import { Client, type QueryResultRow } from "pg";
import { RetryableError } from "../../providers/errors";
import { checkFence } from "../../providers/fence";
import { sqlStateOf } from "../../providers/postgres/errors";
import { quoteIdentifier } from "../../providers/postgres/identifier";
import { type Backend, HISTORY_LIMIT } from "./backend";
import { commandBackend } from "./command-backend";
import { checkpointPath, readUrns } from "./file-backend";
import { PROJECT } from "./project";
import type { PulumiOptions } from "./pulumi";
import { withScratch } from "./scratch";

/** The table of a `postgres://` backend whose URL names none. */
const DEFAULT_TABLE = "pulumi_state";
/** A database that is slow may be; one that does not answer holds up other objects. */
const ANSWER_TIMEOUT_MS = 30_000;

/** Pulumi's `postgres://` backend: its table is read and tidied directly; a state is written by commands alone. */
export function postgresBackend(options: PulumiOptions): Backend {
  const { backendUrl, scratchDirectory } = options.workspace;
  return {
    ...commandBackend(options),
    isDirect: true,
    recorded: (stack) =>
      withScratch(scratchDirectory, "state", async (scratch) => {
        const exists = await copyStack(backendUrl, scratch, stack, "checkpoint");
        return exists ? readUrns(checkpointPath(scratch, stack)) : undefined;
      }),
    names: (start) => listStackRows(backendUrl, start),
    remove: (stack) => removeStackRows(backendUrl, stack),
    cutHistory: (stack) => cutHistory(backendUrl, stack),
    look: (stack, what, read) =>
      withScratch(scratchDirectory, "copy", async (scratch) => {
        const directory = join(scratch, ".pulumi");
        const exists = await copyStack(backendUrl, directory, stack, what);
        return exists ? read({ directory, backendUrl: pathToFileURL(scratch).href }) : undefined;
      }),
  };
}

/**
 * Copies a stack from a `postgres://` backend to a `file://` one. The CLI itself cannot be used to look at such a
 * backend without the right to write: it begins by making its table, even where there is one.
 *
 * @param directory the `.pulumi` of the file backend
 * @param what `checkpoint`: the stack's state; `history`: its updates, with their checkpoints, as well
 * @returns whether there is such a stack
 * @throws RetryableError when the database cannot be reached
 */
async function copyStack(
  backendUrl: string,
  directory: string,
  stack: string,
  what: "checkpoint" | "history",
): Promise<boolean> {
  const { root, checkpoint, history } = keysOf(backendUrl, stack);
  return withTable(backendUrl, async (client, table) => {
    const rows = await rowsOf<{ key: string; data: string }>(
      client,
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

async function listStackRows(backendUrl: string, start: string): Promise<string[]> {
  const { stacks: folder } = keysOf(backendUrl, "");
  return withTable(backendUrl, async (client, table) => {
    const rows = await rowsOf<{ key: string }>(
      client,
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
    const rows = await rowsOf<{ key: string }>(
      client,
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

async function cutHistory(backendUrl: string, stack: string): Promise<void> {
  const { history } = keysOf(backendUrl, stack);
  await withTable(backendUrl, async (client, table) => {
    checkFence();
    await rowsOf(
      client,
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

/** Removes a stack: its state, the backup that the CLI makes of one, its history, and the lock of a CLI that was killed. */
async function removeStackRows(backendUrl: string, stack: string): Promise<void> {
  const { checkpoint, history, locks } = keysOf(backendUrl, stack);
  await withTable(backendUrl, async (client, table) => {
    checkFence();
    await rowsOf(
      client,
      `DELETE FROM ${table} WHERE key IN ($1, $1 || '.gz', $1 || '.bak', $1 || '.gz.bak') OR key LIKE $2 OR key LIKE $3`,
      [checkpoint, likeAllOf(history), likeAllOf(locks)],
    );
  });
}

/** The rows that a statement returns; none of a table that does not exist, as the CLI makes it with the first stack. */
async function rowsOf<R extends QueryResultRow>(client: Client, statement: string, values: unknown[]): Promise<R[]> {
  try {
    return (await client.query<R>(statement, values)).rows;
  } catch (error) {
    if (sqlStateOf(error) === "42P01") return [];
    throw error;
  }
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
