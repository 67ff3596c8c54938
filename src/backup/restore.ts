import { TerminalError } from "../../providers/errors";
import { backupFile, readBackup } from "./backup-files";
import type { StateBackend } from "./state-backend";

const SHOWN = 5;

/**
 * Writes the stacks of a backup into a backend; stacks that the backup does not have are left alone. Nothing is written unless
 * all of the backup is whole and none of its stacks is there, or may be overwritten.
 *
 * @returns how many were written
 * @throws TerminalError `NoBackup`, or `StackExists` naming the stacks that are in the way
 */
export async function restore(
  directory: string,
  backend: StateBackend,
  { overwrite, onStack }: { overwrite: boolean; onStack: (count: number, all: number) => void },
): Promise<number> {
  const { stacks } = await readBackup(directory);
  const names = Object.keys(stacks);
  const present = new Set(await backend.names());
  const inTheWay = names.filter((name) => present.has(name));
  if (inTheWay.length > 0 && !overwrite) {
    const more = inTheWay.length > SHOWN ? `, and ${inTheWay.length - SHOWN} more` : "";
    throw new TerminalError(
      "StackExists",
      `${inTheWay.length} of ${names.length} stacks exist in the backend: ${inTheWay.slice(0, SHOWN).join(", ")}${more}. ` +
        "Nothing was written; --overwrite replaces their state",
    );
  }
  for (const [index, name] of names.entries()) {
    await backend.write(name, backupFile(directory, name), { exists: present.has(name) });
    onStack(index + 1, names.length);
  }
  return names.length;
}
