import type { TestCluster, TestClusterOptions } from "./cluster";

/**
 * Starts the real kube-apiserver and etcd, PostgreSQL, simulated nodes and the operator, in a folder of their own. The
 * binaries are made or downloaded once and then cached, see `kindstack dev`.
 *
 * Needs a runner that can load ES modules from CommonJS, such as Vitest and Node's own; Jest cannot.
 */
export async function startTestCluster(options: TestClusterOptions): Promise<TestCluster> {
  // Loaded here: tests without a cluster need none of it, and Jest cannot load it.
  const { openTestCluster } = require("./cluster") as typeof import("./cluster");
  return openTestCluster(options);
}
