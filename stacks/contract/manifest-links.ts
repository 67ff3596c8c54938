import { existsSync, lstatSync } from "node:fs";
import { realpath } from "node:fs/promises";
import { dirname, isAbsolute, join, relative, resolve, sep } from "node:path";

/*
 * Manifests may be from others: a link among them could lead to a file of the machine that reads them.
 */

/**
 * Refuses a file that is elsewhere, by a link.
 *
 * @param root a path without links
 * @throws Error when the file is not below it, or among what git keeps
 */
export async function refuseLinkOutOf(root: string, file: string): Promise<void> {
  const target = await realpath(file);
  if (!isWithin(root, target)) throw new Error("it is a link to a file outside of the folder");
  // A checkout may keep its token there.
  if (relative(root, target).split(sep).includes(".git")) throw new Error("it is a link into .git");
}

/**
 * The folder that a path named by a user may not lead out of: the repository, or else the working directory if the path is
 * below it, or else the folder that the path is in.
 */
export function rootOf(path: string): string {
  const named = resolve(path);
  const isBelow = isWithin(process.cwd(), named);
  const folder = isBelow ? process.cwd() : realFolder(dirname(named));
  for (let above = folder; ; above = dirname(above)) {
    if (existsSync(join(above, ".git"))) return above;
    if (dirname(above) === above) return folder;
  }
}

/** The folder, or if it is a link the first one above it that is none. */
function realFolder(folder: string): string {
  return lstatSync(folder, { throwIfNoEntry: false })?.isSymbolicLink() ? realFolder(dirname(folder)) : folder;
}

function isWithin(root: string, path: string): boolean {
  const inside = relative(root, path);
  return inside.split(sep)[0] !== ".." && !isAbsolute(inside);
}
