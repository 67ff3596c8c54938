import fs from "node:fs";
import path from "node:path";

/** All files in a folder and its subfolders, of which a process may remove some meanwhile. @throws when there is no such folder */
export function filesUnder(directory: string): string[] {
  return fs.readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const file = path.join(directory, entry.name);
    if (!entry.isDirectory()) return entry.isFile() ? [file] : [];
    return unlessGone(() => filesUnder(file)) ?? [];
  });
}

/** The text of a file; `undefined` when that was removed meanwhile. */
export function readIfThere(file: string, encoding: BufferEncoding = "utf8"): string | undefined {
  return unlessGone(() => fs.readFileSync(file, encoding));
}

function unlessGone<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
