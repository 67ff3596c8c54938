import { randomUUID } from "node:crypto";
import { link, mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import Type from "typebox";
import { Compile } from "typebox/compile";
import { RetryableError, TerminalError } from "../../providers/errors";
import { parseJson } from "../text/json";

export const ownerSchema = Type.Object({
  /** Another one for each claim. */
  id: Type.String({ minLength: 1 }),
  /** The cluster's name, or its UID. */
  cluster: Type.String(),
  clusterUid: Type.String(),
  /** The operator's. */
  namespace: Type.String(),
  /** ISO 8601. */
  since: Type.String(),
});
/** The operator that writes the stacks of a backend. */
export type BackendOwner = Type.Static<typeof ownerSchema>;
const ownerValidator = Compile(ownerSchema);

/** The file with the backend's owner, for the Automation API; the engine in Go has the same in `state/owner.go`. */
export function ownerFileOf(backendUrl: string): string {
  if (backendUrl.startsWith("file://")) return join(fileURLToPath(new URL(backendUrl)), ".pulumi/kindstack/owner.json");
  throw new TerminalError(
    "Misconfigured",
    "KINDSTACK_ENGINE: an operator on Pulumi's Automation API can tell only of a backend with file:// whose it is; " +
      "use the engine in Go for others",
  );
}

export async function readOwner(file: string): Promise<BackendOwner | undefined> {
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  const owner = text === undefined ? undefined : parseJson(ownerValidator, text);
  if (text !== undefined && owner === undefined)
    throw new RetryableError("Unreadable", `${file} does not say whose the backend is`);
  return owner;
}

/** See {@link StackEngine.claimBackend}. */
export async function writeOwner(
  file: string,
  owner: BackendOwner,
  replaces: string | undefined,
): Promise<BackendOwner> {
  const aside = `${file}.${randomUUID()}`;
  await mkdir(dirname(file), { recursive: true });
  await writeFile(aside, JSON.stringify(owner), { mode: 0o600 });
  try {
    if (replaces === undefined) {
      // Of several at once, one succeeds.
      await link(aside, file).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== "EEXIST") throw error;
      });
    } else if ((await readOwner(file))?.id === replaces) {
      await rename(aside, file);
    }
  } finally {
    await rm(aside, { force: true });
  }
  return (await readOwner(file)) ?? owner;
}
