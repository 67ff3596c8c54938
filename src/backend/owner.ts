import type { BackendOwner } from "../automation/owner-file";
import { shellWord } from "../text/shell";

/** The identity of an operator among all clusters, and among the installations of one cluster. */
export type OperatorIdentity = Omit<BackendOwner, "id" | "since">;

/** Whether a backend is this operator's. Clusters of the same name differ by their UIDs. */
export function isOwner(owner: BackendOwner, { cluster, clusterUid, namespace }: OperatorIdentity): boolean {
  return owner.cluster === cluster && owner.clusterUid === clusterUid && owner.namespace === namespace;
}

export function describeOwner({ cluster, clusterUid, namespace }: OperatorIdentity): string {
  const uid = cluster === clusterUid ? "" : ` (UID ${clusterUid})`;
  return `the operator in the namespace ${namespace} of cluster ${cluster}${uid}`;
}

/** The command that makes a backend an operator's, wherever it is run. @param from whose it is */
export function howToClaim({ cluster, clusterUid, namespace }: OperatorIdentity, from?: BackendOwner): string {
  const name = cluster === clusterUid ? "" : `KINDSTACK_CLUSTER=${shellWord(cluster)} `;
  const other = from === undefined || from.cluster === cluster ? "" : ` --from ${shellWord(from.cluster)}`;
  return `${name}kindstack state claim -n ${namespace}${other}`;
}
