import { createHash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import type { DevCluster } from "../src/dev/cluster";
import { answersOk } from "../src/dev/health";
import { freePort } from "../src/dev/ports";
import { packageRoot } from "../src/package";
import { goBuild } from "../src/toolchain/go";
import type { Tool } from "../src/toolchain/tool";
import { type OperatorProcess, startProcess } from "./operator-process";

/** What Kindstack is compared to: the same objects and rows, by `bench/go-operator/`. */
export const GO_OPERATOR = "an operator in Go";

/** Where its sources are, from the package's root. */
const MODULE = "bench/go-operator";

export interface GoOperatorOptions {
  /** Reconciles objects whose generation has changed only, as those who know controller-runtime have it. */
  passOverOwnWrites: boolean;
}

/** How it is built; the digest of its sources is its version, so that what is in the cache is always of these. */
export function goOperatorTool(): Tool {
  const folder = path.join(packageRoot, MODULE);
  const digest = createHash("sha256");
  for (const file of fs.readdirSync(folder).sort()) {
    digest.update(file).update(fs.readFileSync(path.join(folder, file)));
  }
  return {
    name: "bench-go-operator",
    version: digest.digest("hex").slice(0, 16),
    sources: [goBuild({ module: MODULE, package: ".", estimatedSeconds: 90 })],
  };
}

/**
 * Starts it as a process of the cluster and waits until it is ready. There must be the kinds' CRDs, and no other
 * operator at the same time.
 *
 * @param file the program
 */
export async function startGoOperator(
  cluster: DevCluster,
  file: string,
  environment: Record<string, string>,
  { passOverOwnWrites }: GoOperatorOptions,
): Promise<OperatorProcess> {
  const port = await freePort();
  const args = [
    "--health-probe-bind-address",
    `127.0.0.1:${port}`,
    ...(passOverOwnWrites ? ["--pass-over-own-writes"] : []),
  ];
  const started = await startProcess(cluster, {
    name: "go-operator",
    command: file,
    args,
    env: { ...cluster.env, ...environment },
    port,
    tier: 4,
    stopSeconds: 40,
    isHealthy: () => answersOk(`http://127.0.0.1:${port}/readyz`),
  });
  return { ...started, counted: async () => 0 };
}
