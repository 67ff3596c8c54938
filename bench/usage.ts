import { setTimeout as delay } from "node:timers/promises";
import { devClusterStatus } from "../src/dev/cluster";
import type { Measured } from "./lifecycle";
import { sumOfMetric } from "./operator-process";
import { cpuSeconds, treeCpuSeconds } from "./processes";
import { WRITER_RESOURCE } from "./writers";

/** Events and what else follows the last object are part of what a step costs. */
const SETTLE_MS = 3_000;

/** CPU time in ms, by process, and requests, of one step of all objects. */
export interface Usage {
  apiServer: number;
  etcd: number;
  postgres: number;
  operator: number;
  engine: number;
  /** GETs of single PostgresWriters, by the API server's count. */
  gets: number;
  /** Of the operator, of all kinds. */
  requests: number;
}

/** Measures what a step uses, from before its first request until a moment after its last object. */
export async function usageOf<T>(measured: Measured, work: () => Promise<T>): Promise<{ result: T; usage: Usage }> {
  const before = await usageSoFar(measured);
  const result = await work();
  await delay(SETTLE_MS, undefined, { signal: measured.context.signal });
  const after = await usageSoFar(measured);
  const names = Object.keys(after) as (keyof Usage)[];
  const usage = Object.fromEntries(names.map((name) => [name, after[name] - before[name]])) as Record<
    keyof Usage,
    number
  >;
  return { result, usage };
}

/** Of all processes that an object passes through, but for the client's. */
export function totalMs({ apiServer, etcd, postgres, operator, engine }: Usage): number {
  return apiServer + etcd + postgres + operator + engine;
}

async function usageSoFar({ cluster, operator }: Measured): Promise<Usage> {
  const { processes } = devClusterStatus(cluster.dev.dir);
  const tree = async (name: string) => {
    const pid = processes.find((process) => process.name === name)?.pid;
    if (pid === undefined) throw new Error(`${name} does not run`);
    return treeCpuSeconds(pid);
  };
  const own = (await cpuSeconds(operator.pid)).own;
  const withEngine = await treeCpuSeconds(operator.pid);
  const metrics = await cluster.client.json<string>("GET", "/metrics");
  return {
    apiServer: (await tree("kube-apiserver")) * 1000,
    etcd: (await tree("etcd")) * 1000,
    postgres: (await tree("postgres")) * 1000,
    operator: own * 1000,
    engine: (withEngine - own) * 1000,
    gets: sumOfMetric(metrics, "apiserver_request_total", { resource: WRITER_RESOURCE, verb: "GET" }),
    requests: await cluster.operatorRequests(),
  };
}
