import { request } from "undici";
import type { DevCluster } from "../src/dev/cluster";
import { operator } from "../src/dev/operator";
import { stopProcess } from "../src/dev/process";
import type { Component } from "../src/dev/supervisor";
import { parseExposition } from "../src/telemetry/exposition";

/** An operator that runs as a process of its own, from its start to its end. */
export interface OperatorProcess {
  pid: number;
  /** From the start of the process until it said that it is ready. */
  readyAfterMs: number;
  /** The sum of a counter over all its labels, as it says itself; 0 for one that was never counted up. */
  counted(metric: string): Promise<number>;
  /** Stops it, as a deployment would, when it still runs. */
  stop(): Promise<void>;
}

/**
 * Starts an operator of the compiled command line and waits until it is ready.
 *
 * @param environment what differs from that of an operator in development
 * @param args more words for `run`
 */
export async function startOperator(
  cluster: DevCluster,
  environment: Record<string, string>,
  engine: string,
  args: readonly string[] = [],
): Promise<OperatorProcess> {
  const component = operator(cluster, engine, { args });
  const env = { ...component.env, ...environment };
  const started = await startProcess(cluster, { ...component, env });
  return {
    ...started,
    async counted(metric) {
      const { body } = await request(`http://127.0.0.1:${component.port}/metrics`);
      return sumOfMetric(await body.text(), metric);
    },
  };
}

/** Starts a process of the cluster and waits until it is healthy. */
export async function startProcess(
  cluster: DevCluster,
  component: Component,
): Promise<Pick<OperatorProcess, "pid" | "readyAfterMs" | "stop">> {
  const startedAt = performance.now();
  const started = await cluster.start(component);
  const readyAfterMs = performance.now() - startedAt;
  return { pid: started.pid, readyAfterMs, stop: () => stopProcess(started, "SIGTERM", 60) };
}

/** The sum of a metric's samples in Prometheus' text format. @param wanted the labels of a sample that counts */
export function sumOfMetric(text: string, metric: string, wanted: Readonly<Record<string, string>> = {}): number {
  return parseExposition(text)
    .filter(({ name, labels }) => name === metric && Object.entries(wanted).every(([key, one]) => labels[key] === one))
    .reduce((sum, { value }) => sum + value, 0);
}
