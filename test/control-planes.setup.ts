import { execFileSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import type { TestProject } from "vitest/node";
import { type DevCluster, removeDevCluster, startDevCluster } from "../src/dev/cluster";
import { resolveBinaries, resolveBinary } from "../src/toolchain/resolve";
import type { ToolEvent } from "../src/toolchain/tool";
import { filesUnder } from "./files";
import { testTools } from "./tools";

const ROOT = path.resolve(__dirname, "..");

/** What tests need besides a control plane: none of them may wait for a build. */
const TOOLS = ["pulumi", "engine", "pulumi-language-nodejs"] as const;
const TEST_TOOLS = [
  testTools.promtool,
  testTools.helm,
  testTools.kstatus,
  testTools["flux-diff"],
  testTools.pgbouncer,
  testTools.postgresql,
];

/** One control plane for each worker that runs, so that files with operators run side by side and do not see each other. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  compile();
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), "kindstack-test-"));
  fs.chmodSync(directory, 0o711); // PostgreSQL may run as another user
  const running: DevCluster[] = [];
  const tearDown = async () => {
    await Promise.all(running.map((cluster) => cluster.stop().then(() => removeDevCluster(cluster.dir))));
    fs.rmSync(directory, { recursive: true, force: true });
  };
  try {
    await resolveBinaries(TOOLS, { observe: report });
    for (const tool of TEST_TOOLS) await resolveBinary(tool, { observe: report });
    const workers = Math.min(project.config.maxWorkers, await countFiles(project));
    const started = await Promise.allSettled(
      Array.from({ length: workers }, (_, worker) =>
        startDevCluster({ dir: path.join(directory, String(worker + 1)), observeTools: report }),
      ),
    );
    running.push(...started.flatMap((result) => (result.status === "fulfilled" ? [result.value] : [])));
    const failed = started.find((result) => result.status === "rejected");
    if (failed !== undefined) throw failed.reason;
  } catch (error) {
    await tearDown();
    throw error;
  }
  project.provide(
    "controlPlanes",
    running.map(({ kubeconfig, env }) => ({ kubeconfig, env: { ...env } })),
  );
  return tearDown;
}

/** How many test files were asked for; what names them on the command line is no part of Vitest's types. */
async function countFiles(project: TestProject): Promise<number> {
  const { filenamePattern } = project.vitest as { filenamePattern?: string[] };
  return (await project.globTestFiles(filenamePattern)).testFiles.length;
}

function report(event: ToolEvent): void {
  if (event.type !== "making") return;
  console.log(`${event.tool.name}: ${event.source.label}, about ${event.source.estimatedSeconds} s`);
}

/** Compiles what the command line and the benches run, when a source is newer than the last build. */
function compile(): void {
  const record = path.join(ROOT, "dist/.tsbuildinfo");
  const started = new Date();
  const sources = ["src", "providers", "stacks", "bench"].flatMap((folder) => filesUnder(path.join(ROOT, folder)));
  const newest = Math.max(...sources.map((file) => fs.statSync(file).mtimeMs));
  if (fs.existsSync(record) && fs.statSync(record).mtimeMs > newest) return;
  execFileSync("npm", ["run", "--silent", "build"], { cwd: ROOT, stdio: "inherit" });
  fs.utimesSync(record, started, started); // the compiler leaves it alone when nothing but times has changed
}
