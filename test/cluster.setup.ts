import fs from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import type { TestProject } from "vitest/node";
import { startDevCluster } from "../src/dev/cluster";

declare module "vitest" {
  export interface ProvidedContext {
    /** The control plane and the database that all integration tests share; no operator runs in it. */
    cluster: { kubeconfig: string; env: Record<string, string> };
  }
}

/** One cluster for the whole run, in a directory of its own. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const dir = await fs.mkdtemp(path.join(os.tmpdir(), "kindstack-test-"));
  const cluster = await startDevCluster({
    dir,
    observeTools: (event) => {
      if (event.type === "making") {
        console.log(`${event.tool.name}: ${event.source.label}, about ${event.source.estimatedSeconds} s`);
      }
    },
  });
  project.provide("cluster", { kubeconfig: cluster.kubeconfig, env: { ...cluster.env } });
  return async () => {
    await cluster.stop();
    await fs.rm(dir, { recursive: true, force: true });
  };
}
