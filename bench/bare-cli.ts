import path from "node:path";
import { ProviderHost } from "../providers/host/server";
import { providersOf } from "../providers/index";
import { StackEngine } from "../src/automation/engine";
import type { Program } from "../src/automation/language-server";
import { openWorkspace } from "../src/automation/workspace";
import type { BenchCluster, BenchContext } from "./cluster";

/**
 * Updates without an operator: one process of the CLI each, the same programs and providers in this process. It is the
 * least that an update can take.
 */
export interface BareCli {
  /** @returns milliseconds. @throws Error with the failures of an update that did not succeed */
  up(stack: string, program: Program, options?: { refresh?: boolean }): Promise<number>;
  destroy(stack: string): Promise<number>;
  cliProcesses(): Promise<number>;
}

const TIMEOUT_MS = 900_000;

export async function withBareCli<T>(
  { signal }: BenchContext,
  cluster: BenchCluster,
  work: (bare: BareCli) => Promise<T>,
): Promise<T> {
  const pulumi = await cluster.countedPulumi("bare");
  const directory = path.join(cluster.scratch, "bare");
  const host = await ProviderHost.start(providersOf());
  try {
    const workspace = await openWorkspace({
      pulumi: { cli: pulumi.cli },
      workDirectory: directory,
      backendUrl: `file://${path.join(directory, "state")}`,
      protection: { passphrase: { value: "bench" }, keyService: undefined },
      environment: process.env,
      attachment: host.attachment,
      log: console,
    });
    const engine = new StackEngine({ workspace, host, timeoutMs: TIMEOUT_MS, log: console });
    const atStart = await pulumi.count();
    const timed = async (update: ReturnType<StackEngine["up"]>) => {
      const started = performance.now();
      const { outcome, failures } = await update;
      signal.throwIfAborted();
      if (outcome !== "succeeded") throw new Error(`the bare update failed: ${JSON.stringify(failures)}`);
      return performance.now() - started;
    };
    const options = { signal, savesOnce: true }; // as fast as the CLI can be
    return await work({
      up: (stack, program, { refresh = false } = {}) => timed(engine.up(stack, program, { refresh, ...options })),
      destroy: (stack) => timed(engine.destroy(stack, options)),
      cliProcesses: async () => (await pulumi.count()) - atStart,
    });
  } finally {
    host.stop();
  }
}
