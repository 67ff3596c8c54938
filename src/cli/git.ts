import { realpathSync, statSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { ExecaError, execa } from "execa";
import { foldersFrom } from "../../providers/folders";
import { selectFiles } from "../../stacks/contract/manifests";
import { counted } from "../preview/wording";
import { some } from "../text/some";

interface Commit {
  /** The repository's root, without symbolic links. */
  root: string;
  id: string;
}

/**
 * The merge base of another revision and HEAD: files that the other revision has added since do not count as removed here.
 *
 * @throws Error without such a revision, or without a repository; for a shallow clone, with the command to fetch the history
 */
export async function commonAncestor(folder: string, revision: string): Promise<Commit> {
  const root = await git(folder, ["rev-parse", "--show-toplevel"]);
  const isShallow = (await git(root, ["rev-parse", "--is-shallow-repository"])) === "true";
  try {
    const commit = await commitOf(root, revision);
    const { stdout, exitCode } = await execa("git", ["merge-base", commit, "HEAD"], {
      ...{ cwd: root, stdin: "ignore", env: WITHOUT_HOOK, reject: false },
    });
    if (exitCode === 0) return { root, id: stdout };
    if (isShallow) throw new Error("git merge-base: no common commit");
    return { root, id: commit }; // histories that have nothing in common
  } catch (error) {
    if (!isShallow) throw error;
    throw new Error(
      `--prune-against: this clone is shallow and lacks ${revision}, or where it branched off. Fetch the whole ` +
        "history: `git fetch --unshallow`, or a fetch depth of 0 (fetch-depth in GitHub, GIT_DEPTH in GitLab)",
    );
  }
}

/** @throws Error naming the option that names the revision, and why there may be none */
async function commitOf(root: string, revision: string): Promise<string> {
  return git(root, ["rev-parse", "--verify", "--end-of-options", `${revision}^{commit}`]).catch(() => {
    throw new Error(
      `--prune-against: there is no commit ${revision} in this clone. A checkout may have one branch alone: fetch the other, ` +
        "such as with `git fetch origin main:refs/remotes/origin/main`",
    );
  });
}

/**
 * The files in some paths that another revision has changed since the merge base.
 *
 * @param other the other commit's id
 * @param insides the paths, as git names them
 */
async function lackingFrom(
  base: Commit,
  other: string,
  insides: readonly string[],
): Promise<{ commits: number; files: string[] }> {
  const { root, id } = base;
  const where = insides.includes("") ? [] : ["--", ...insides];
  const names = async (from: string) =>
    (await git(root, ["diff", "--name-only", "--no-renames", "-z", from, other, ...where])).split("\0").filter(Boolean);
  const ours = new Set(await names("HEAD"));
  const files = (await names(id)).filter((file) => ours.has(file));
  const commits = Number(await git(root, ["rev-list", "--count", `HEAD..${other}`, ...where]));
  return { commits, files };
}

/** A path as git names it: within the root. */
export async function pathInRepository(path: string): Promise<{ folder: string; inside: string }> {
  const isFolder = (above: string) => statSync(above, { throwIfNoEntry: false })?.isDirectory() === true;
  const folder = foldersFrom(resolve(path)).find(isFolder) ?? "/";
  const root = await git(folder, ["rev-parse", "--show-toplevel"]);
  // What git calls the root has no symbolic links in it.
  return { folder, inside: relative(root, join(realpathSync(folder), relative(folder, resolve(path)))) };
}

/** The plain files of a commit below a path, or that path itself; links and submodules are none. */
export async function filesAt({ root, id }: Commit, path: string) {
  const where = path === "" ? [] : ["--", path];
  const listed = await git(root, ["ls-tree", "-r", "-z", "-l", "--full-tree", id, ...where]);
  return listed.split("\0").flatMap((line) => {
    const [, mode = "", blob = "", bytes, file = ""] = /^(\d+) \w+ (\w+) +(\S+)\t([\s\S]*)$/.exec(line) ?? [];
    return mode.startsWith("100") ? [{ path: file, blob, bytes: Number(bytes) }] : [];
  });
}

/** Writes all files of a commit into a folder. The repository, its index and its work trees stay as they are. */
export async function checkOut({ root, id }: Commit, folder: string): Promise<void> {
  const env = { GIT_INDEX_FILE: join(folder, ".index") };
  await git(root, ["read-tree", id], env);
  await git(root, ["checkout-index", "--all", `--prefix=${join(folder, "tree")}/`], env);
}

/** In a hook, these name the repository, and so would take the place of the folder. */
const WITHOUT_HOOK = { GIT_DIR: undefined, GIT_WORK_TREE: undefined, GIT_INDEX_FILE: undefined, GIT_PREFIX: undefined };

export async function git(cwd: string, words: string[], env: NodeJS.ProcessEnv = {}): Promise<string> {
  try {
    return (await execa("git", words, { cwd, stdin: "ignore", env: { ...WITHOUT_HOOK, ...env } })).stdout;
  } catch (error) {
    if (!(error instanceof ExecaError)) throw error;
    throw new Error(`git ${words[0]}: ${String(error.stderr || error.shortMessage).trim()}`);
  }
}

const SHOWN = 10;

/**
 * The changes of another revision in these paths that HEAD lacks. A merge includes them, so a preview without them differs from
 * the merge.
 *
 * @param all whether every file counts, or manifests alone
 * @throws Error as {@link commonAncestor}
 */
export async function behindOf(
  revision: string,
  paths: readonly string[],
  { all }: { all: boolean },
): Promise<string[]> {
  const places = await Promise.all(
    paths.map(async (path) => {
      const { folder, inside } = await pathInRepository(path);
      return { base: await commonAncestor(folder, revision), inside };
    }),
  );
  const repositories = Map.groupBy(places, ({ base }) => base.root);
  const lacks = [...repositories.values()].map(async (places) => {
    const { base } = places[0] as (typeof places)[0];
    const insides = places.map(({ inside }) => inside);
    const { commits, files } = await lackingFrom(base, await commitOf(base.root, revision), insides);
    const manifests = new Set(selectFiles(files, "").files);
    const relevant = files.filter((file) => all || manifests.has(file) || insides.includes(file));
    if (commits === 0 || relevant.length === 0) return [];
    const what = `${counted(commits, "commit")} of ${revision} that ${commits === 1 ? "changes" : "change"}`;
    return [`HEAD lacks ${what} these paths: ${some(relevant, SHOWN)}`];
  });
  return (await Promise.all(lacks)).flat();
}
