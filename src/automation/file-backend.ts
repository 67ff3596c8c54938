import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { checkFence } from "../../providers/fence";
import { type Backend, HISTORY_LIMIT, PROJECT, type ReadableStack, stackPaths } from "./backend";
import { type StackState, stateOf } from "./stack-state";

/** Pulumi's `file://` backend, read and written directly. */
export class FileBackend implements Backend {
  readonly isDirect = true;
  readonly #directory: string;
  readonly #template: string;

  /**
   * @param directory its `.pulumi`
   * @param template an empty stack's checkpoint
   */
  constructor(directory: string, template: string) {
    this.#directory = directory;
    this.#template = template;
  }

  async createMissing(stack: string): Promise<void> {
    if (!this.#has(stack)) await createStack(this.#directory, stack, this.#template);
  }

  async state(stack: string): Promise<StackState | undefined> {
    const { checkpoint } = stackPaths(this.#directory, stack);
    const bytes = (await readIfThere(checkpoint)) ?? (await readIfThere(`${checkpoint}.gz`));
    return bytes && stateOf(bytes);
  }

  async names(): Promise<string[]> {
    const files = await readdir(stackPaths(this.#directory).stacks).catch(() => []);
    return files.flatMap((file) => /^([^.].*)\.json(\.gz)?$/.exec(file)?.[1] ?? []);
  }

  /** Removes also the CLI's backups, and the temporary files of processes that were killed while they wrote. */
  async remove(stack: string): Promise<void> {
    const { stacks, checkpoint, history, locks, backups } = stackPaths(this.#directory, stack);
    await rm(checkpoint, { force: true });
    const ours = [`${stack}.json.`, `.${stack}.json.`];
    const files = await readdir(stacks).catch(() => []);
    const beside = files.filter((file) => ours.some((start) => file.startsWith(start)));
    for (const path of [...beside.map((file) => join(stacks, file)), backups, history, locks]) {
      await rm(path, { recursive: true, force: true });
    }
  }

  async cutHistory(stack: string): Promise<void> {
    const outdated = (await historyOf(this.#directory, stack)).slice(HISTORY_LIMIT);
    for (const file of outdated.flat()) await rm(file, { force: true });
  }

  async forgetPendingCreates(stack: string): Promise<void> {
    const { checkpoint } = stackPaths(this.#directory, stack);
    const text = await readFile(checkpoint, "utf8").catch(() => undefined);
    if (text === undefined) return;
    const content = JSON.parse(text) as { checkpoint?: { latest?: { pending_operations?: unknown[] } } };
    if (!content.checkpoint?.latest?.pending_operations?.length) return;
    delete content.checkpoint.latest.pending_operations;
    await writeWhole(checkpoint, JSON.stringify(content));
  }

  /**
   * A process that was killed, or had no room, while it wrote a lock leaves a file that the CLI takes for one, cannot read,
   * and fails on for ever (`unexpected end of JSON input`).
   */
  async removeTornLocks(stack: string): Promise<string[]> {
    const { locks } = stackPaths(this.#directory, stack);
    const torn: string[] = [];
    for (const file of await readdir(locks).catch(() => [])) {
      const text = await readFile(join(locks, file), "utf8").catch(() => undefined); // it may be released at this moment
      if (text === undefined || isJson(text)) continue;
      await rm(join(locks, file), { force: true });
      torn.push(file);
    }
    return torn;
  }

  async unlock(stack: string, cancel: () => Promise<unknown>): Promise<void> {
    await this.forgetPendingCreates(stack); // as long as the lock is there, a crash in between leads here again
    await cancel();
  }

  async look<T>(
    stack: string,
    _what: "checkpoint" | "history",
    read: (stack: ReadableStack) => Promise<T>,
  ): Promise<T | undefined> {
    return this.#has(stack) ? read({ directory: this.#directory }) : undefined;
  }

  /** Asked before every update, so the checkpoint, which may be large, is not read for it. */
  #has(stack: string): boolean {
    const { checkpoint } = stackPaths(this.#directory, stack);
    return existsSync(checkpoint) || existsSync(`${checkpoint}.gz`);
  }
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

/** Makes an empty stack by writing what `pulumi stack init` would write. For a stack that does not exist. */
export async function createStack(directory: string, stack: string, template: string): Promise<void> {
  const { stacks, checkpoint } = stackPaths(directory, stack);
  const content = JSON.parse(template) as { checkpoint: { stack: string } };
  content.checkpoint.stack = `organization/${PROJECT}/${stack}`;
  await mkdir(stacks, { recursive: true });
  const meta = join(directory, "meta.yaml");
  // Without its text, as a disk that was full may have left it, the CLI refuses the whole backend.
  if ((await readFile(meta, "utf8").catch(() => "")) === "") await writeWhole(meta, "version: 1\n");
  await writeWhole(checkpoint, JSON.stringify(content));
}

/** The files of each update in a stack's history, the newest first. */
export async function historyOf(directory: string, stack: string): Promise<string[][]> {
  const { history } = stackPaths(directory, stack);
  const updates = new Map<bigint, string[]>();
  for (const file of await readdir(history).catch(() => [])) {
    const [, time] = /-(\d+)\.(?:history|checkpoint)\.json/.exec(file) ?? [];
    if (time === undefined) continue;
    updates.set(BigInt(time), [...(updates.get(BigInt(time)) ?? []), join(history, file)]);
  }
  return [...updates].sort(([a], [b]) => (a < b ? 1 : -1)).map(([, files]) => files);
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

function readIfThere(path: string): Promise<Buffer | undefined> {
  return readFile(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
