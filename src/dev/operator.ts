import { request } from "undici";
import type { PulumiBinary } from "../automation/workspace";
import type { DevCluster } from "./cluster";
import { freePort } from "./ports";
import type { Component } from "./supervisor";

export interface OperatorOptions {
  /** Words for `--kinds`, such as `portableWords`; by default the built-in ones. */
  kinds?: readonly string[];
  /** Apply edits of the kinds' files. */
  watch?: boolean;
}

/**
 * The operator as one more process of the cluster: the command line's own `run`, with the cluster's environment.
 *
 * @param mainScript the compiled command line
 */
export async function operator(
  cluster: DevCluster,
  mainScript: string,
  pulumi: PulumiBinary,
  { kinds = [], watch = false }: OperatorOptions = {},
): Promise<Component> {
  const port = await freePort();
  return {
    name: "operator",
    command: process.execPath,
    args: [
      ...[mainScript, "run", "--install-crds", "--http-port", String(port), "--admission-port", "0"],
      ...kinds.flatMap((word) => ["--kinds", word]),
      ...(watch ? ["--watch"] : []),
    ],
    cwd: cluster.dir,
    env: {
      ...cluster.env,
      ...(pulumi.cli !== undefined
        ? { KINDSTACK_PULUMI: pulumi.cli, KINDSTACK_PULUMI_SERVER: "none" }
        : { KINDSTACK_PULUMI_SERVER: pulumi.server }),
    },
    port,
    tier: 4,
    stopSignal: "SIGTERM",
    stopSeconds: 40, // running updates finish first
    startSeconds: 60,
    isHealthy: () => isReadyOn(port),
  };
}

/** Whether the operator on this local port reports that it is ready. @throws Error when nothing answers */
export async function isReadyOn(port: number): Promise<boolean> {
  const { statusCode, body } = await request(`http://127.0.0.1:${port}/readyz`, { headersTimeout: 2_000 });
  await body.dump();
  return statusCode === 200;
}
