import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { execa } from "execa";

/**
 * Copies a program of the cache, with what lies beside it: servers of databases do not run as root, and another user cannot
 * read root's cache.
 *
 * @returns the copy's folder, and who may run it
 */
export async function copyForServers(
  program: string,
): Promise<{ directory: string; user: { uid?: number; gid?: number } }> {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), "kindstack-server-"));
  fs.chmodSync(directory, 0o755);
  fs.cpSync(path.dirname(program), directory, { recursive: true, verbatimSymlinks: true });
  return { directory, user: process.getuid?.() === 0 ? await nobody() : {} };
}

async function nobody(): Promise<{ uid: number; gid: number }> {
  const id = async (what: "-u" | "-g") => Number((await execa("id", [what, "nobody"])).stdout);
  return { uid: await id("-u"), gid: await id("-g") };
}
