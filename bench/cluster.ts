import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { KubeConfig } from "@kubernetes/client-node";
import pg from "pg";
import { KubernetesClient } from "../providers/kubernetes/client";
import { devClusterStatus, startDevCluster } from "../src/dev/cluster";
import { operator } from "../src/dev/operator";
import { packageRoot } from "../src/package";

/** A control plane, a database and an operator of the bench's own. */
export interface BenchCluster {
  directory: string;
  env: Readonly<Record<string, string>>;
  client: KubernetesClient;
  operatorPid: number;
  countRows(id: string): Promise<number>;
  stop(): Promise<void>;
}

export async function startBenchCluster(pulumi: string, log: (line: string) => void): Promise<BenchCluster> {
  const directory = await mkdtemp(join(tmpdir(), "kindstack-bench-"));
  const cluster = await startDevCluster({ dir: directory, log });
  try {
    await cluster.start(await operator(cluster, join(packageRoot, "dist/src/cli/main.js"), pulumi));
  } catch (error) {
    await cluster.stop(log);
    throw error;
  }
  const config = new KubeConfig();
  config.loadFromFile(cluster.kubeconfig);
  const client = new KubernetesClient(config);
  const pool = new pg.Pool({ ...cluster.postgres, max: 1 });
  return {
    directory,
    env: cluster.env,
    client,
    operatorPid: devClusterStatus(directory).processes.find(({ name }) => name === "operator")?.pid ?? 0,
    async countRows(id) {
      const { rows } = await pool.query<{ count: number }>("select count(*)::int from students where id like $1", [id]);
      return rows[0]?.count ?? 0;
    },
    async stop() {
      await pool.end();
      await client.close();
      await cluster.stop(log);
      await rm(directory, { recursive: true, force: true });
    },
  };
}
