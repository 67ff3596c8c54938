import { createHash } from "node:crypto";
import { mkdir, mkdtemp, readdir, readFile, rename, rm, rmdir, writeFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import Type from "typebox";
import { Compile } from "typebox/compile";
import { TerminalError } from "../../providers/errors";
import { parseJson } from "../automation/parse-json";
import type { StackState } from "../automation/stack-reader";

/** A stack and its state, secrets encrypted. */
export interface NamedState {
  name: string;
  state: StackState;
}

const LIST = "backup.json";
const NAME = /^[a-zA-Z0-9._-]{1,100}$/;
const listSchema = Type.Object({
  /** The version of Kindstack that wrote it. */
  kindstack: Type.String(),
  /** When it was begun, ISO 8601. */
  time: Type.String(),
  /** The scheme of the backend: `file`, `postgres`, … */
  backend: Type.String(),
  /** The SHA-256 of each stack's file, by name. */
  stacks: Type.Record(Type.String(), Type.String()),
});
const listValidator = Compile(listSchema);

/** What a backup says of itself. */
export type BackupList = Type.Static<typeof listSchema>;

/**
 * Writes a backup: a file for each stack, in the form that `pulumi stack import` takes, and a list of them. It appears under
 * its name when it is complete; until then, and when it fails, nothing is there.
 *
 * @throws TerminalError `BackupExists` when there is something in the directory
 */
export async function writeBackup(
  directory: string,
  readAll: (onState: (state: NamedState) => Promise<void>) => Promise<void>,
  about: Omit<BackupList, "stacks">,
  onStack: (count: number) => void,
): Promise<BackupList> {
  const target = resolve(directory);
  if ((await readdir(target).catch(() => [])).length > 0) {
    throw new TerminalError("BackupExists", `${directory} is not empty: name another directory`);
  }
  await mkdir(dirname(target), { recursive: true });
  const aside = await mkdtemp(join(dirname(target), `.${basename(target)}-`));
  try {
    const list: BackupList = { ...about, stacks: {} };
    await readAll(async ({ name, state }) => {
      const text = `${JSON.stringify(state, undefined, 1)}\n`;
      await writeFile(join(aside, fileOf(name)), text, { mode: 0o600 });
      list.stacks[name] = digestOf(text);
      onStack(Object.keys(list.stacks).length);
    });
    await writeFile(join(aside, LIST), `${JSON.stringify(list, undefined, 1)}\n`, { mode: 0o600 });
    await rmdir(target).catch(() => {}); // an empty one may be there
    await rename(aside, target);
    return list;
  } catch (error) {
    await rm(aside, { recursive: true, force: true });
    throw error;
  }
}

/** @throws TerminalError `NoBackup` when there is none, or it is not whole */
export async function readBackup(directory: string): Promise<BackupList> {
  const text = await readFile(join(directory, LIST), "utf8").catch(() => undefined);
  if (text === undefined) throw new TerminalError("NoBackup", `${directory} is not a backup: it has no ${LIST}`);
  const list = parseJson(listValidator, text);
  if (list === undefined || !Object.keys(list.stacks).every((name) => NAME.test(name))) {
    throw new TerminalError("NoBackup", `${join(directory, LIST)} is not what \`kindstack backup\` writes`);
  }
  for (const [name, digest] of Object.entries(list.stacks)) {
    const state = await readFile(join(directory, fileOf(name)), "utf8").catch(() => undefined);
    if (state === undefined) throw new TerminalError("NoBackup", `${directory} lacks the file of the stack ${name}`);
    if (digestOf(state) !== digest) {
      throw new TerminalError("NoBackup", `${join(directory, fileOf(name))} was changed after the backup`);
    }
  }
  return list;
}

/** The file of a stack in a backup. */
export function backupFile(directory: string, name: string): string {
  return join(resolve(directory), fileOf(name));
}

function fileOf(name: string): string {
  return `stack.${name}.json`;
}

function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
