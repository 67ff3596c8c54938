import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ExecaError, execa } from "execa";
import { errorMessageOf } from "../../providers/errors";
import type { Manifests } from "../../stacks/contract/manifests";
import { parseManifests } from "../../stacks/contract/parse-manifests";
import { killGroup } from "../automation/interruption";
import { withScratch } from "../automation/scratch";
import { checkOut, commonAncestor, git } from "./git";
import type { EarlierManifests } from "./revision";

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
