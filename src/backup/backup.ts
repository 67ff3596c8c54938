import { createDecipheriv, hash, pbkdf2 } from "node:crypto";
import { mkdir, readdir, readFile, rename, rmdir, writeFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import Type from "typebox";
import { Compile } from "typebox/compile";
import { TerminalError } from "../../providers/errors";
import type { GoEngine } from "../automation/go-engine";
import { type StackState, stackStateSchema } from "../automation/stack-state";
import { withScratch } from "../automation/workspace";
import { packageVersion } from "../package";
import { parseJson } from "../text/json";

const SHOWN = 5;
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

const stateSchema = Compile(stackStateSchema);

export interface Backend {
  engine: Pick<GoEngine, "listStacks" | "exportAll" | "importStack">;
  url: string;
  signal: AbortSignal;
  /** Told of each stack that is done. */
  onStack(count: number, all?: number): void;
}

type BackupList = Type.Static<typeof listSchema>;

/**
 * Writes a backup: a file for each stack, in the form that `pulumi stack import` takes, and a list of them. The
 * directory appears when the backup is complete; a backup that fails leaves nothing.
 */
export async function writeBackup(directory: string, { engine, url, signal, onStack }: Backend): Promise<number> {
  const target = resolve(directory);
  const isFree = await readdir(target).then(
    (files) => files.length === 0,
    (error: NodeJS.ErrnoException) => error.code === "ENOENT",
  );
  if (!isFree) throw new TerminalError("BackupExists", `${directory} is not an empty directory: name another one`);
  const time = new Date().toISOString();
  await mkdir(dirname(target), { recursive: true });
  return withScratch(dirname(target), `.${basename(target)}`, async (aside) => {
    const stacks: Record<string, string> = {};
    await engine.exportAll(async (name, state) => {
      const text = `${JSON.stringify(state, undefined, 1)}\n`;
      await writeFile(join(aside, fileOf(name)), text, { mode: 0o600 });
      stacks[name] = hash("sha256", text);
      onStack(Object.keys(stacks).length);
    }, signal);
    const list: BackupList = { kindstack: packageVersion, time, backend: url.split("://", 1)[0] ?? "", stacks };
    await writeFile(join(aside, LIST), `${JSON.stringify(list, undefined, 1)}\n`, { mode: 0o600 });
    await rmdir(target).catch(() => {}); // an empty one may be there
    await rename(aside, target);
    return Object.keys(stacks).length;
  });
}

async function readBackup(directory: string): Promise<BackupList> {
  const text = await readIfThere(join(directory, LIST));
  if (text === undefined) throw new TerminalError("NoBackup", `${directory} is not a backup: it has no ${LIST}`);
  const list = parseJson(listValidator, text);
  if (list === undefined || !Object.keys(list.stacks).every((name) => NAME.test(name))) {
    throw new TerminalError("NoBackup", `${join(directory, LIST)} is not what \`kindstack backup\` writes`);
  }
  for (const [name, digest] of Object.entries(list.stacks)) {
    const state = await readIfThere(join(directory, fileOf(name)));
    if (state === undefined) throw new TerminalError("NoBackup", `${directory} lacks the file of the stack ${name}`);
    if (hash("sha256", state) !== digest) {
      throw new TerminalError("NoBackup", `${join(directory, fileOf(name))} was changed after the backup`);
    }
  }
  return list;
}

/**
 * Writes the stacks of a backup into a backend; stacks that the backup does not have are left alone. Nothing is written
 * unless the whole backup is intact and each of its stacks is new or may be overwritten.
 *
 * @returns with `sealed`, the stacks with secrets that another passphrase has encrypted
 */
export async function restore(
  directory: string,
  { engine, signal, onStack }: Backend,
  { overwrite, passphrase }: { overwrite: boolean; passphrase: string | undefined },
): Promise<{ count: number; sealed: string[] }> {
  const { stacks } = await readBackup(directory);
  const names = Object.keys(stacks);
  const present = new Set((await engine.listStacks(signal)).map(({ name }) => name));
  const inTheWay = names.filter((name) => present.has(name));
  if (inTheWay.length > 0 && !overwrite) {
    const more = inTheWay.length > SHOWN ? `, and ${inTheWay.length - SHOWN} more` : "";
    throw new TerminalError(
      "StackExists",
      `${inTheWay.length} of ${names.length} stacks exist in the backend: ${inTheWay.slice(0, SHOWN).join(", ")}${more}. ` +
        "Nothing was written; --overwrite replaces their state",
    );
  }
  const salts = new Map<string, string>();
  for (const [index, name] of names.entries()) {
    const file = join(resolve(directory), fileOf(name));
    const state = parseJson(stateSchema, await readFile(file, "utf8"));
    if (state === undefined) throw new TerminalError("NoBackup", `${file} is not a stack's state`);
    await engine.importStack(name, state, signal);
    const salt = saltOfSecrets(state);
    if (salt !== undefined) salts.set(name, salt);
    onStack(index + 1, names.length);
  }
  return { count: names.length, sealed: await sealedBeyond(passphrase, salts) };
}

/** Which stacks have secrets that a passphrase does not open; most have the same salt. */
async function sealedBeyond(passphrase: string | undefined, salts: ReadonlyMap<string, string>): Promise<string[]> {
  const isOpened = new Map<string, boolean>();
  for (const salt of new Set(salts.values())) {
    isOpened.set(salt, passphrase !== undefined && (await isPassphraseOf(salt, passphrase)));
  }
  return [...salts].filter(([, salt]) => !isOpened.get(salt)).map(([name]) => name);
}

function fileOf(name: string): string {
  return `stack.${name}.json`;
}

/** @throws Error for an existing file that cannot be read, such as another user's */
function readIfThere(file: string): Promise<string | undefined> {
  return readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
}

/** Pulumi's mark of a secret in a state. */
const SECRET = '"4dabf18193072939515e22adb298388d":"1b47061264138c4ac30d75fd1eb44270"';
/** What Pulumi encrypts beside the salt, to recognize the passphrase. */
const KNOWN = "pulumi";
const ROUNDS = 1_000_000;
const TAG_BYTES = 16;

const derive = promisify(pbkdf2);

/** The salt of a state that a passphrase encrypts; `undefined` for one without secrets, or with a key service. */
function saltOfSecrets(state: StackState): string | undefined {
  const { type, state: { salt } = {} } = (state.deployment.secrets_providers ?? {}) as {
    type?: string;
    state?: { salt?: string };
  };
  return type === "passphrase" && JSON.stringify(state.deployment.resources ?? []).includes(SECRET) ? salt : undefined;
}

/** Whether a passphrase is the one that a salt was made with: `v1:<salt>:v1:<nonce>:<text>`, in Base64. */
async function isPassphraseOf(salt: string, passphrase: string): Promise<boolean> {
  const [, seed = "", , nonce = "", text = ""] = salt.split(":");
  const bytes = Buffer.from(text, "base64");
  const key = await derive(passphrase, Buffer.from(seed, "base64"), ROUNDS, 32, "sha256");
  try {
    const decipher = createDecipheriv("aes-256-gcm", key, Buffer.from(nonce, "base64"));
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
    return Buffer.concat([decipher.update(bytes.subarray(0, -TAG_BYTES)), decipher.final()]).toString() === KNOWN;
  } catch {
    return false; // the tag does not fit, or it is no salt
  }
}
