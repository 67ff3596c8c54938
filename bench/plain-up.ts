import fs from "node:fs/promises";
import path from "node:path";
import { execa } from "execa";
import { stringify } from "yaml";
import { packageRoot } from "../src/package";
import type { BenchCluster, BenchContext } from "./cluster";
import { type Lifecycle, lifecycleOf } from "./lifecycle";
import { CHANGED_AGE, type Writer, writerManifest } from "./writers";

const STACK = "plain";

/**
 * What a platform team without an operator does: `pulumi up` in the project's root with all manifests, changed ones, and
 * `pulumi destroy`. The CLI has its language host and the SDK's process for dynamic providers, and saves the state once.
 */
export async function plainLife(
  { pulumi, languageHost, signal, detail }: BenchContext,
  cluster: BenchCluster,
  writers: readonly Writer[],
): Promise<Lifecycle> {
  const directory = await projectCopy(path.join(cluster.scratch, "plain"));
  const manifests = path.join(directory, "writers.yaml");
  const sdk = path.join(packageRoot, "node_modules/@pulumi/pulumi"); // its script for dynamic providers lies in it
  const env = {
    PATH: [path.dirname(languageHost), sdk, process.env.PATH].join(path.delimiter),
    PULUMI_HOME: path.join(directory, "home"),
    PULUMI_BACKEND_URL: `file://${directory}`,
    PULUMI_CONFIG_PASSPHRASE: "bench",
    PULUMI_SKIP_UPDATE_CHECK: "true",
    PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION: "true",
    PULUMI_EXPERIMENTAL: "true",
    PULUMI_SKIP_CHECKPOINTS: "true", // else the state is written again for each resource, which takes ten times as long
  };
  const run = (...words: string[]) =>
    execa(pulumi, [...words, "--stack", STACK, "--non-interactive"], { cwd: directory, env, cancelSignal: signal });
  const timed = async (command: "up" | "destroy"): Promise<number> => {
    detail(`one pulumi ${command} of ${writers.length}`);
    const started = performance.now();
    await run(command, "--yes", "--skip-preview");
    return performance.now() - started;
  };
  const write = (age?: number) =>
    fs.writeFile(manifests, writers.map((writer) => stringify(writerManifest(writer, age))).join("---\n"));

  await run("stack", "init");
  await run("config", "set", "kindstack:manifests", manifests);
  return lifecycleOf(cluster, writers.length, {
    created: () => write().then(() => timed("up")),
    changed: () => write(CHANGED_AGE).then(() => timed("up")),
    deleted: () => timed("destroy"),
  });
}

/** A folder that the CLI takes for the project's root, so that it writes nothing there. */
async function projectCopy(folder: string): Promise<string> {
  await fs.mkdir(folder, { recursive: true });
  await fs.copyFile(path.join(packageRoot, "Pulumi.yaml"), path.join(folder, "Pulumi.yaml"));
  for (const name of ["dist", "node_modules"]) await fs.symlink(path.join(packageRoot, name), path.join(folder, name));
  return folder;
}
