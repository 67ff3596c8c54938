import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { ExecaError, execa } from "execa";
import { errorMessageOf } from "../../providers/errors";
import { MAX_BYTES, type Manifests, selectFiles } from "../../stacks/contract/manifests";
import { parseManifests, type SourcedDocument } from "../../stacks/contract/parse-manifests";
import { killGroup } from "../automation/interruption";
import { withScratch } from "../automation/workspace";
import { checkOut, commonAncestor, filesAt, git, pathInRepository } from "./git";

interface EarlierManifests extends Manifests {
  /** Why deletions may be unseen; empty when all that was there is known. */
  unseen: readonly string[];
}

/**
 * The manifests of files and directories at the merge base of another revision and HEAD.
 *
 * @throws Error when there is no such revision, or no repository
 */
export async function readManifestsAt(revision: string, paths: readonly string[]): Promise<EarlierManifests> {
  const objects: SourcedDocument[] = [];
  const unseen: string[] = [];
  for (const path of paths) {
    const { folder, inside } = await pathInRepository(path);
    const commit = await commonAncestor(folder, revision);
    const files = await filesAt(commit, inside);
    if (files.length === 0) unseen.push(`${path} is not in ${revision}, so nothing of it can be seen as deleted`);
    const isFile = files.length === 1 && files[0]?.path === inside;
    const names = files.map((file) => relative(inside, file.path));
    const { files: selected, templates } = selectFiles(names, path);
    const chosen = new Set(selected);
    for (const file of files) {
      const within = relative(inside, file.path);
      if (!isFile && !chosen.has(within)) continue;
      const name = isFile ? path : join(path, within);
      if (file.bytes > MAX_BYTES) {
        unseen.push(`${name} at ${revision} has more than ${MAX_BYTES} bytes`);
        continue;
      }
      const text = await git(commit.root, ["cat-file", "blob", file.blob]);
      const parsed = parseManifests(text, name, { strict: false });
      objects.push(...parsed.objects);
      if (templates.has(within)) continue;
      unseen.push(...parsed.problems.map(({ message }) => `${name} at ${revision}: ${message}`));
    }
  }
  return { objects, problems: [], unseen };
}

const MAX_OUTPUT_BYTES = 32 * 1024 * 1024;

/**
 * The manifests that a command prints, such as `kubectl kustomize overlays/prod`.
 *
 * @param signal ends the command and its child processes
 * @throws Error when the command fails
 */
export async function renderManifests(
  command: string,
  signal: AbortSignal,
  directory = process.cwd(),
): Promise<Manifests> {
  signal.throwIfAborted();
  const running = execa(command, {
    ...{ shell: true, cwd: directory, stdin: "ignore", maxBuffer: MAX_OUTPUT_BYTES },
    detached: true, // a process group of its own
  });
  const end = () => killGroup(running.pid); // the command only prints, so nothing is lost
  signal.addEventListener("abort", end);
  try {
    return parseManifests((await running).stdout, command, { strict: true });
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof ExecaError)) throw error;
    const why = String(error.stderr || "").trim() || error.shortMessage;
    throw new Error(`--render: \`${command}\` failed with ${error.exitCode ?? error.code ?? error.signal}: ${why}`);
  } finally {
    signal.removeEventListener("abort", end);
  }
}

/**
 * The output of the command in a copy of the merge base of another revision and HEAD. Where the command cannot run there,
 * deletions are unknown.
 *
 * @throws Error when there is no such revision, or no repository
 */
export async function renderManifestsAt(
  command: string,
  revision: string,
  signal: AbortSignal,
): Promise<EarlierManifests> {
  const commit = await commonAncestor(process.cwd(), revision);
  const inside = await git(process.cwd(), ["rev-parse", "--show-prefix"]);
  return withScratch(tmpdir(), "kindstack-render", async (folder) => {
    await checkOut(commit, folder);
    const directory = join(folder, "tree", inside);
    const fail = (why: string): EarlierManifests => ({ objects: [], problems: [], unseen: [why] });
    if (!existsSync(directory)) return fail(`${inside} is not in ${revision}, so nothing can be seen as deleted`);
    try {
      const { objects, problems } = await renderManifests(command, signal, directory);
      return { objects, problems: [], unseen: problems.map(({ message }) => `--render at ${revision}: ${message}`) };
    } catch (error) {
      signal.throwIfAborted();
      return fail(`nothing can be seen as deleted: at ${revision}, ${errorMessageOf(error)}`);
    }
  });
}
