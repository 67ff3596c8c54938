import type { ClientBase } from "pg";
import { sqlStateOf } from "./errors";

/** Texts of batches differ by the number of their rows: those of the first and most frequent sizes are prepared. */
const MOST_STATEMENTS = 64;

/** What servers say of prepared statements that a session lacks or has already, and of plans that a change of a table outdates. */
const OUTDATED = new Set(["26000", "42P05", "0A000"]);

/** The names of the statements that a connection has prepared, by their texts. */
const prepared = new WeakMap<ClientBase, Map<string, string>>();

/**
 * Lets a new connection prepare statements if it leads to the server itself. Behind a pooler, each transaction may have another
 * session, which has prepared nothing; a pooler gives clients numbers of its own in place of those of the server's processes.
 */
export async function allowPrepared(client: ClientBase): Promise<void> {
  const { rows } = await client.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
  const { processID } = client as { processID?: number };
  if (rows[0]?.pid === processID) prepared.set(client, new Map());
}

/** From now on, statements of a connection are sent as they are. */
export function forbidPrepared(client: ClientBase): void {
  prepared.delete(client);
}

/** The name under which a connection prepares a statement; undefined where it does not. */
export function preparedName(client: ClientBase, text: string): string | undefined {
  const names = prepared.get(client);
  const known = names?.get(text);
  if (names === undefined || known !== undefined || names.size >= MOST_STATEMENTS) return known;
  const name = `kindstack_${names.size}`;
  names.set(text, name);
  return name;
}

/** Whether a statement would have done what it was to do, had it not been prepared. */
export function isOutdatedStatement(error: unknown): boolean {
  return OUTDATED.has(sqlStateOf(error) ?? "");
}
