import { realpathSync, statSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { ExecaError, execa } from "execa";
import { isManifestFile, type Manifests, parseManifests } from "../../stacks/contract/manifests";

/**
 * The manifests of files and directories at the merge base of another revision and HEAD, so that what others have added
 * there since does not count as removed here.
 *
 * @throws Error when there is no such revision, or no repository
 */
export async function readManifestsAt(revision: string, paths: readonly string[]): Promise<Manifests> {
  const all: Manifests = { objects: [], problems: [] };
  for (const path of paths.filter((path) => path !== "-")) {
    const folder = existingFolder(resolve(path));
    const root = await git(folder, ["rev-parse", "--show-toplevel"]);
    const commit = await commonAncestor(root, revision);
    // What git calls the root has no symbolic links in it.
    const inside = relative(root, join(realpathSync(folder), relative(folder, resolve(path))));
    for (const file of await filesAt(root, commit, inside)) {
      const named = file === inside;
      const within = relative(inside, file);
      if (!named && !isManifestFile(within)) continue;
      const text = await git(root, ["cat-file", "blob", `${commit}:${file}`]);
      const { objects, problems } = parseManifests(text, named ? path : join(path, within), { strict: false });
      all.objects.push(...objects);
      all.problems.push(...problems);
    }
  }
  return all;
}

async function commonAncestor(root: string, revision: string): Promise<string> {
  const commit = await git(root, ["rev-parse", "--verify", "--end-of-options", `${revision}^{commit}`]);
  // A shallow clone may not have it.
  return git(root, ["merge-base", commit, "HEAD"]).catch(() => commit);
}

async function filesAt(root: string, commit: string, path: string): Promise<string[]> {
  const listed = await git(root, [
    "ls-tree",
    "-r",
    "-z",
    "--name-only",
    "--full-tree",
    commit,
    ...(path && ["--", path]),
  ]);
  return listed.split("\0").filter((file) => file !== "");
}

/** The folder of a path, or the first one above it that is still there. */
function existingFolder(path: string): string {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ? path : existingFolder(dirname(path));
}

async function git(cwd: string, words: string[]): Promise<string> {
  try {
    return (await execa("git", words, { cwd, stdin: "ignore" })).stdout;
  } catch (error) {
    if (!(error instanceof ExecaError)) throw error;
    throw new Error(`git ${words[0]}: ${String(error.stderr || error.shortMessage).trim()}`);
  }
}
