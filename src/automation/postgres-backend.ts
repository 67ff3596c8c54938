import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Client } from "pg";
import { RetryableError } from "../../providers/errors";
import { quoteIdentifier } from "../../providers/postgres/identifier";

/** The table of a `postgres://` backend whose URL names none. */
const DEFAULT_TABLE = "pulumi_state";

/**
 * Copies a stack from a `postgres://` backend to a `file://` one. The CLI itself cannot be used to look at such a
 * backend without the right to write: it begins by making its table, even where there is one.
 *
 * @param directory the `.pulumi` of the file backend
 * @param what `checkpoint`: the stack's state; `history`: its updates as well
 * @returns whether there is such a stack
 * @throws RetryableError when the database cannot be reached
 */
export async function copyStack(
  backendUrl: string,
  directory: string,
  project: string,
  stack: string,
  what: "checkpoint" | "history",
): Promise<boolean> {
  const url = new URL(backendUrl);
  const table = url.searchParams.get("table") ?? DEFAULT_TABLE;
  url.searchParams.delete("table");
  // `sslmode` as the CLI's own driver understands it.
  if (url.searchParams.has("sslmode")) url.searchParams.set("uselibpqcompat", "true");
  const root = `${decodeURIComponent(url.pathname.slice(1))}/.pulumi/`;
  const checkpoint = `${root}stacks/${project}/${stack}.json`;
  const history = `${root}history/${project}/${stack}/`;
  const client = new Client({ connectionString: url.href });
  await client.connect().catch((error: NodeJS.ErrnoException) => {
    const message = `the database of the state does not let us in: ${error.message || error.code}`;
    throw new RetryableError("Unreadable", message, { cause: error });
  });
  try {
    const { rows } = await client.query<{ key: string; data: string }>(
      `SELECT key, data->>'data' AS data FROM ${table.split(".").map(quoteIdentifier).join(".")}
       WHERE key IN ($1, $1 || '.gz') OR $3 AND starts_with(key, $2) AND key LIKE '%.history.json%'`,
      [checkpoint, history, what === "history"],
    );
    for (const { key, data } of rows) {
      const path = join(directory, key.slice(root.length));
      await mkdir(dirname(path), { recursive: true });
      await writeFile(path, Buffer.from(data, "base64"), { mode: 0o600 });
    }
    return rows.some(({ key }) => key.startsWith(checkpoint));
  } finally {
    await client.end();
  }
}
