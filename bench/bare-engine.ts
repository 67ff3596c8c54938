import path from "node:path";
import { ProviderHost } from "../providers/host/session";
import { providersOf } from "../providers/index";
import { GoEngine } from "../src/automation/go-engine";
import type { Program } from "../src/automation/program";
import { openEngine } from "../src/automation/workspace";
import type { BenchCluster, BenchContext } from "./cluster";

/** Updates without an operator: the same engine, programs and providers. It is the least that an update can take. */
export interface BareEngine {
  /** @returns milliseconds. @throws Error with the failures of an update that did not succeed */
  up(stack: string, program: Program, options?: { refresh?: boolean }): Promise<number>;
  destroy(stack: string): Promise<number>;
}

const TIMEOUT_MS = 900_000;

export async function withBareEngine<T>(
  { engine: file, signal }: BenchContext,
  cluster: BenchCluster,
  work: (bare: BareEngine) => Promise<T>,
): Promise<T> {
  const directory = path.join(cluster.scratch, "bare");
  const processes = await openEngine({
    file,
    workDirectory: directory,
    backendUrl: `file://${path.join(directory, "state")}`,
    protection: { passphrase: { value: "bench" }, keyService: undefined },
    environment: process.env,
    log: console,
  });
  const host = new ProviderHost(providersOf());
  const engine = new GoEngine({ processes, host, timeoutMs: TIMEOUT_MS });
  try {
    const timed = async (update: ReturnType<GoEngine["up"]>) => {
      const started = performance.now();
      const { summary, failures } = await update;
      signal.throwIfAborted();
      if (summary.result !== "succeeded") throw new Error(`the bare update failed: ${JSON.stringify(failures)}`);
      return performance.now() - started;
    };
    const options = { signal, savesOnce: true };
    return await work({
      up: (stack, program, { refresh = false } = {}) => timed(engine.up(stack, program, { refresh, ...options })),
      destroy: (stack) => timed(engine.destroy(stack, options)),
    });
  } finally {
    await processes.close();
  }
}
