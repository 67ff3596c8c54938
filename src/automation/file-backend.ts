import { randomUUID } from "node:crypto";
import { access, mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { checkFence } from "../../providers/fence";
import { type Backend, HISTORY_LIMIT } from "./backend";
import { PROJECT } from "./project";

/**
 * Pulumi's `file://` backend, read and written directly. The layout is the CLI's (`version: 1`).
 *
 * @param directory its `.pulumi`
 * @param template an empty stack's checkpoint
 */
export function fileBackend(directory: string, template: string): Backend {
  return {
    isDirect: true,
    async createMissing(stack) {
      if (!(await stackExists(directory, stack))) await createStack(directory, stack, template);
    },
    recorded: (stack) => readUrns(checkpointPath(directory, stack)),
    names: (start) => listStacks(directory, start),
    remove: (stack) => removeStack(directory, stack),
    cutHistory: (stack) => pruneHistory(directory, stack),
    forgetPendingCreates: (stack) => forgetPendingCreates(directory, stack),
    removeTornLocks: (stack) => removeTornLocks(directory, stack),
    async unlock(stack, cancel) {
      await forgetPendingCreates(directory, stack); // as long as the lock is there, a crash in between leads here again
      await cancel();
    },
    look: async (stack, _what, read) => ((await stackExists(directory, stack)) ? read({ directory }) : undefined),
  };
}

/** The directory of a `file://` backend, or `undefined` for any other. */
export function fileBackendDirectory(backendUrl: string): string | undefined {
  if (!backendUrl.startsWith("file://")) return undefined;
  const url = new URL(backendUrl);
  return join(fileURLToPath(`file://${url.pathname}`), ".pulumi");
}

/**
 * A backend's URL with which the CLI writes nothing that can be left half-written. Next to each file of a `file://`
 * backend it would write another one with unused attributes, not atomically: killed in between, it leaves an
 * empty one, and the checkpoint, though whole, is refused for ever (`failed to load checkpoint: EOF`). See `metadata` in
 * https://pkg.go.dev/gocloud.dev/blob/fileblob.
 */
export function crashSafeBackendUrl(backendUrl: string): string {
  if (!backendUrl.startsWith("file://")) return backendUrl;
  const [path, query] = backendUrl.split("?");
  const parameters = new URLSearchParams(query);
  parameters.set("metadata", "skip");
  return `${path}?${parameters}`;
}

/** The folder of all stacks' checkpoints. */
export function stacksFolder(directory: string): string {
  return join(directory, "stacks", PROJECT);
}

export function checkpointPath(directory: string, stack: string): string {
  return join(stacksFolder(directory), `${stack}.json`);
}

export function historyFolder(directory: string, stack: string): string {
  return join(directory, "history", PROJECT, stack);
}

function locksFolder(directory: string, stack: string): string {
  return join(directory, "locks", "organization", PROJECT, stack);
}

/** Makes an empty stack by writing what `pulumi stack init` would write. For a stack that does not exist, see {@link stackExists}. */
export async function createStack(directory: string, stack: string, template: string): Promise<void> {
  const path = checkpointPath(directory, stack);
  const checkpoint = JSON.parse(template) as { checkpoint: { stack: string } };
  checkpoint.checkpoint.stack = `organization/${PROJECT}/${stack}`;
  await mkdir(dirname(path), { recursive: true });
  const meta = join(directory, "meta.yaml");
  // Without its text, as a disk that was full may have left it, the CLI refuses the whole backend.
  if ((await readFile(meta, "utf8").catch(() => "")) === "") await writeWhole(meta, "version: 1\n");
  await writeWhole(path, JSON.stringify(checkpoint));
}

export async function forgetPendingCreates(directory: string, stack: string): Promise<void> {
  const path = checkpointPath(directory, stack);
  const text = await readFile(path, "utf8").catch(() => undefined);
  if (text === undefined) return;
  const checkpoint = JSON.parse(text) as { checkpoint?: { latest?: { pending_operations?: unknown[] } } };
  if (!checkpoint.checkpoint?.latest?.pending_operations?.length) return;
  delete checkpoint.checkpoint.latest.pending_operations;
  await writeWhole(path, JSON.stringify(checkpoint));
}

/** Writes a file atomically: readers see the old or the new content, also when writing fails. */
async function writeWhole(path: string, text: string): Promise<void> {
  const aside = join(dirname(path), `.${basename(path)}.${randomUUID()}.tmp`);
  try {
    await writeFile(aside, text, { mode: 0o600 });
    checkFence(); // it would overwrite another's stack
    await rename(aside, path);
  } catch (error) {
    await rm(aside, { force: true });
    throw error;
  }
}

export async function stackExists(directory: string, stack: string): Promise<boolean> {
  // Asked before every update, so the checkpoint, which may be large, is not read for it.
  return access(checkpointPath(directory, stack)).then(
    () => true,
    () => false,
  );
}

/** The URNs in a checkpoint, or an exported state; `undefined` when the file does not exist. */
export async function readUrns(file: string): Promise<string[] | undefined> {
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  if (text === undefined) return undefined;
  const state = JSON.parse(text) as { checkpoint?: { latest?: Deployment }; deployment?: Deployment };
  return ((state.checkpoint?.latest ?? state.deployment)?.resources ?? []).map(({ urn }) => urn);
}

interface Deployment {
  resources?: { urn: string }[] | null;
}

async function listStacks(directory: string, start: string): Promise<string[]> {
  const files = await readdir(stacksFolder(directory)).catch(() => []);
  return files.filter((file) => file.startsWith(start) && file.endsWith(".json")).map((file) => file.slice(0, -5));
}

/**
 * Removes what is no whole lock of a stack: a process that was killed, or had no room, while it wrote one leaves a file
 * that the CLI takes for a lock, cannot read, and fails on for ever (`unexpected end of JSON input`).
 *
 * @returns their names
 */
async function removeTornLocks(directory: string, stack: string): Promise<string[]> {
  const locks = locksFolder(directory, stack);
  const torn: string[] = [];
  for (const file of await readdir(locks).catch(() => [])) {
    const text = await readFile(join(locks, file), "utf8").catch(() => undefined); // it may be released at this moment
    if (text === undefined || isJson(text)) continue;
    await rm(join(locks, file), { force: true });
    torn.push(file);
  }
  return torn;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Removes all but the newest entries of a stack's history; Pulumi's own backend never does. */
export async function pruneHistory(directory: string, stack: string): Promise<void> {
  const history = historyFolder(directory, stack);
  const entries = new Map<string, string[]>();
  for (const file of await readdir(history).catch(() => [])) {
    const time = /-(\d+)\.(?:history|checkpoint)\.json/.exec(file)?.[1];
    if (time !== undefined) entries.set(time, [...(entries.get(time) ?? []), file]);
  }
  const outdated = [...entries.keys()].sort((a, b) => Number(BigInt(b) - BigInt(a))).slice(HISTORY_LIMIT);
  for (const file of outdated.flatMap((time) => entries.get(time) ?? []))
    await rm(join(history, file), { force: true });
}

/**
 * Removes a stack: its checkpoint, backups of it, its history and locks, and the temporary files of processes that were
 * killed while they wrote.
 */
export async function removeStack(directory: string, stack: string): Promise<void> {
  const checkpoint = checkpointPath(directory, stack);
  await rm(checkpoint, { force: true });
  const stacks = dirname(checkpoint);
  const ours = [`${basename(checkpoint)}.`, `.${basename(checkpoint)}.`];
  const files = (await readdir(stacks).catch(() => [])).filter((file) => ours.some((start) => file.startsWith(start)));
  for (const path of [
    ...files.map((file) => join(stacks, file)),
    join(directory, "backups", PROJECT, stack),
    historyFolder(directory, stack),
    locksFolder(directory, stack),
  ]) {
    await rm(path, { recursive: true, force: true });
  }
}
