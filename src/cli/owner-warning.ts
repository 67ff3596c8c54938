import type { Cluster } from "../../providers/kubernetes/cluster";
import type { StackEngine } from "../automation/engine";
import { describeOwner } from "../backend/owner";

/**
 * Says on standard error when a backend is another cluster's than the current one. What cannot be read, the command itself
 * tells, and there need not be a cluster.
 */
export async function warnOfOwner(
  engine: Pick<StackEngine, "backendOwner">,
  currentCluster: () => Promise<Cluster | undefined>,
): Promise<void> {
  const owner = await engine.backendOwner().catch(() => undefined);
  const cluster = owner && (await currentCluster().catch(() => undefined));
  if (owner === undefined || cluster === undefined || cluster.uid === owner.clusterUid) return;
  const message = `the state's backend belongs to ${describeOwner(owner)}; the current cluster is ${cluster.name}`;
  process.stderr.write(`warning: ${message}\n`);
}
