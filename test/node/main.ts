import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { cacheDirectory, resolveBinary } from "../../src/toolchain/resolve";
import type { ToolEvent } from "../../src/toolchain/tool";
import { tools } from "../../src/toolchain/tools";
import { testTools } from "../tools";
import { removeCgroups } from "./cgroups";
import { buildImage } from "./image";
import { missingPackages, NAMESPACES, shortcomings } from "./machine";
import { nodeTools, pulumiTools } from "./tools";

/*
 * npm run test:node [-- check | packages | short | ipv6 | FILTER...]
 *
 * check: says what this machine lacks; packages: lists the Debian packages that it lacks; short: the form that CI runs;
 * ipv6: the same in a cluster without IPv4. Without a word, all tests are run, and then ipv6.
 *
 * Brings up Kubernetes nodes on this machine, installs the operator's image on them and tests it. Everything runs in
 * namespaces of its own for mounts, the network and processes: nothing of it outlives them, however this ends.
 */

const ROOT = path.resolve(__dirname, "../..");
const PULUMI_TEST = "test/node/pulumi.node.test.ts";
const IMAGE = "registry.example.com/kindstack:0.1.0";

/** As process 1 of its namespaces: what kubelet and containerd expect of a machine, then the tests. */
const INIT = `
mount --make-rshared /
mount -t tmpfs tmpfs /run
mount -t tmpfs -o mode=1777 tmpfs /var/tmp
ip link set lo up
"$@"
`;

async function main(): Promise<number> {
  const [form, ...filters] = process.argv.slice(2);
  if (form === "packages") {
    console.log(missingPackages().join(" "));
    return 0;
  }
  const lacks = shortcomings();
  if (form === "check") {
    console.log(lacks.join("; "));
    return lacks.length > 0 ? 1 : 0;
  }
  if (lacks.length > 0) {
    console.error(["this machine cannot be a node:", ...lacks].join("\n  "));
    return 1;
  }
  const control = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => control.abort());
  const { signal } = control;
  const runs = runsOf(form, filters);
  const needsPulumi = runs.some(({ files }) => files.length === 0 || files.some((file) => PULUMI_TEST.includes(file)));
  const binaries: Record<string, string> = {};
  const controlPlane = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "postgres"] as const;
  const needed = [...controlPlane.map((name) => tools[name]), ...Object.values(nodeTools), testTools.helm];
  for (const tool of [...needed, ...(needsPulumi ? pulumiTools : [])]) {
    binaries[tool.name] = await resolveBinary(tool, { observe: report, signal });
  }
  const { archive: image, cli, times: imageTimes } = await buildImage(path.join(cacheDirectory(), "image"), IMAGE);
  signal.throwIfAborted();

  for (const run of runs) {
    const code = await runOnNodes(run, { binaries, image, imageTimes, cli }, signal);
    if (code !== 0) return code;
  }
  return 0;
}

/** A cluster, and the files whose tests it is for: all of them when none is named. */
interface Run {
  nodes: number;
  family: "ipv4" | "ipv6";
  files: string[];
}

function runsOf(form: string | undefined, filters: string[]): Run[] {
  const short: Run = { nodes: 1, family: "ipv4", files: ["test/node/short"] };
  const ipv6: Run = { ...short, family: "ipv6" };
  if (form === "short") return [short];
  if (form === "ipv6") return [ipv6];
  if (form !== undefined) return [{ nodes: 2, family: "ipv4", files: [form, ...filters] }];
  return [{ nodes: 2, family: "ipv4", files: [] }, ipv6];
}

/** @returns the exit code of the tests */
async function runOnNodes({ files, ...cluster }: Run, built: object, signal: AbortSignal): Promise<number> {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), "kindstack-node-"));
  fs.chmodSync(directory, 0o711); // PostgreSQL runs as another user
  const cgroup = path.basename(directory);
  try {
    const vitest = [path.join(ROOT, "node_modules/vitest/vitest.mjs"), "run", "--project", "node", ...files];
    const child = spawnInNamespaces([process.execPath, ...vitest], {
      KINDSTACK_NODE: JSON.stringify({ directory, cgroup, ...cluster, ...built }),
    });
    signal.addEventListener("abort", () => child.kill("SIGKILL"));
    const [code] = (await once(child, "exit")) as [number | null];
    return signal.aborted ? 130 : (code ?? 1);
  } finally {
    await removeCgroups(cgroup);
    if (process.env.KINDSTACK_NODE_KEEP === undefined) fs.rmSync(directory, { recursive: true, force: true });
    else console.log(`logs: ${directory}/logs`);
  }
}

/** When this process ends in whatever way, the kernel kills `unshare`, with it process 1 of the namespaces, and so all others. */
function spawnInNamespaces(command: string[], env: Record<string, string>): ChildProcess {
  const args = ["--pdeathsig", "KILL", "unshare", ...NAMESPACES, "--", "bash", "-c", INIT, "init", ...command];
  return spawn("setpriv", args, { cwd: ROOT, stdio: "inherit", env: { ...process.env, ...env } });
}

function report(event: ToolEvent): void {
  if (event.type !== "making") return;
  console.log(`${event.tool.name}: ${event.source.label}, about ${event.source.estimatedSeconds} s`);
}

main().then(
  (code) => process.exit(code),
  (error: unknown) => {
    console.error(error instanceof Error && error.name === "AbortError" ? "interrupted" : error);
    process.exit(1);
  },
);
