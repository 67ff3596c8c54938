import { readdir, readFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { findCondition } from "../stacks/contract/condition";
import { statusOf } from "../stacks/contract/kind";
import type { BenchCluster } from "./cluster";
import { writerManifest } from "./one-object";

/** What an operator costs that has nothing to do. */
export interface IdleFigures {
  objects: number;
  /** The most child processes seen while nothing was to be done. */
  children: number;
  residentMiB: number;
  /** Share of one core, in percent. */
  cpuPercent: number;
}

const SETTLE_TIMEOUT_MS = 300_000;
const OBSERVE_MS = 15_000;
const CLOCK_TICKS_PER_SECOND = 100;

/** Makes `count` objects, waits until all are Ready, then watches the operator do nothing. */
export async function measureIdle(
  cluster: BenchCluster,
  count: number,
  progress: (ready: number) => void,
): Promise<IdleFigures> {
  const { client, operatorPid } = cluster;
  const type = await client.resourceType("demo.yash.com/v1", "PostgresWriter");
  for (let index = 0; index < count; index++) {
    const { apiVersion, kind, spec } = writerManifest("");
    await client.create(type, {
      apiVersion,
      kind,
      metadata: { name: `idle-${index}`, namespace: "default" },
      spec,
    });
  }
  const deadline = Date.now() + SETTLE_TIMEOUT_MS;
  for (let ready = 0; ready < count; ) {
    if (Date.now() > deadline) throw new Error(`only ${ready} of ${count} objects became Ready`);
    await delay(500);
    const { items } = await client.list(type, { namespace: "default" });
    ready = items.filter(
      (object) =>
        object.metadata.name.startsWith("idle-") &&
        findCondition(statusOf(object).conditions, "Ready")?.status === "True",
    ).length;
    progress(ready);
  }

  await delay(2_000); // what follows from the last update is over
  const before = await cpuSeconds(operatorPid);
  let children = 0;
  const until = Date.now() + OBSERVE_MS;
  while (Date.now() < until) {
    children = Math.max(children, await countChildren(operatorPid));
    await delay(250);
  }
  const used = (await cpuSeconds(operatorPid)) - before;
  return {
    objects: count,
    children,
    residentMiB: await residentMiB(operatorPid),
    cpuPercent: (used / (OBSERVE_MS / 1000)) * 100,
  };
}

async function residentMiB(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1] ?? Number.NaN) / 1024;
}

async function cpuSeconds(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8");
  // Fields are counted after the name, which may hold spaces: user and system time are the 14th and 15th.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / CLOCK_TICKS_PER_SECOND;
}

async function countChildren(pid: number): Promise<number> {
  let children = 0;
  for (const task of await readdir(`/proc/${pid}/task`).catch(() => [])) {
    const list = await readFile(`/proc/${pid}/task/${task}/children`, "utf8").catch(() => "");
    children += list.split(" ").filter((child) => child.trim() !== "").length;
  }
  return children;
}
