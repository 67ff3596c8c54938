import { setTimeout as delay } from "node:timers/promises";
import type { BenchCluster, BenchContext } from "./cluster";
import type { OperatorProcess } from "./operator-process";

const TIMEOUT_MS = 120_000;

/** What a new operator did when it found objects as its predecessor has left them. */
export interface Restart {
  operator: OperatorProcess;
  /** Milliseconds from its start until it said that it is ready, and until it had looked at all objects. */
  readyMs: number;
  lookedAtMs: number;
  updates: number;
  cliProcesses: number;
}

/** Stops an operator and starts the next one. */
export async function restart(
  { signal }: BenchContext,
  cluster: BenchCluster,
  before: OperatorProcess,
  objects: number,
): Promise<Restart> {
  await before.stop();
  const started = performance.now();
  const operator = await cluster.startOperator();
  while ((await operator.counted("controller_runtime_reconcile_total")) < objects) {
    if (performance.now() - started > TIMEOUT_MS) throw new Error("not all objects were looked at after the restart");
    await delay(50, undefined, { signal });
  }
  return {
    operator,
    readyMs: operator.readyAfterMs,
    lookedAtMs: performance.now() - started,
    updates: await operator.counted("kindstack_updates_total"),
    cliProcesses: await operator.cliProcesses(),
  };
}
