import fs from "node:fs/promises";
import path from "node:path";
import { PulumiCommand } from "@pulumi/pulumi/automation/cmd";
import { LocalWorkspace } from "@pulumi/pulumi/automation/localWorkspace";
import { packageRoot } from "../src/package";
import type { BenchCluster, BenchContext } from "./cluster";
import { forEachAtOnce, type Writer, writersProgram } from "./writers";

/**
 * The Automation API as its documentation shows it: for each object `createOrSelectStack` and `up`, with the SDK's own
 * process for dynamic providers.
 *
 * @param atOnce maximum number of objects in work at the same time
 * @returns milliseconds for all
 */
export async function measureStock(
  { pulumi, signal, detail }: BenchContext,
  cluster: BenchCluster,
  writers: readonly Writer[],
  atOnce: number,
): Promise<number> {
  const directory = path.join(cluster.scratch, "stock");
  const state = path.join(directory, "state");
  await fs.mkdir(state, { recursive: true });
  const root = path.join(directory, "pulumi"); // the CLI is looked for in `bin`
  await fs.mkdir(path.join(root, "bin"), { recursive: true });
  await fs.symlink(pulumi, path.join(root, "bin/pulumi"));
  const pulumiCommand = await PulumiCommand.get({ root });
  const sdk = path.join(packageRoot, "node_modules/@pulumi/pulumi"); // its script for dynamic providers lies in it
  const envVars = {
    PATH: [sdk, process.env.PATH].join(path.delimiter),
    PULUMI_BACKEND_URL: `file://${state}`,
    PULUMI_CONFIG_PASSPHRASE: "bench",
    PULUMI_SKIP_UPDATE_CHECK: "true",
  };
  let done = 0;
  const update = async (writer: Writer) => {
    signal.throwIfAborted();
    detail(`the stock way: ${done} of ${writers.length}`);
    const stackName = `${writer.namespace}-${writer.name}`;
    const stack = await LocalWorkspace.createOrSelectStack(
      { projectName: "kindstack", stackName, program: async () => writersProgram([writer])() },
      {
        workDir: await projectFolder(path.join(directory, stackName)),
        pulumiHome: path.join(directory, "home"),
        pulumiCommand,
        envVars,
      },
    );
    await stack.up({ signal });
    done++;
  };
  const started = performance.now();
  await forEachAtOnce(writers, update, atOnce);
  return performance.now() - started;
}

/** A folder from which the SDK's process finds the SDK and the providers. */
async function projectFolder(folder: string): Promise<string> {
  await fs.mkdir(path.join(folder, "node_modules"), { recursive: true });
  await fs.symlink(path.join(packageRoot, "node_modules/@pulumi"), path.join(folder, "node_modules/@pulumi"));
  await fs.symlink(packageRoot, path.join(folder, "node_modules/kindstack"));
  return folder;
}
