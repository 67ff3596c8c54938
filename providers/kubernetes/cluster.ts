import { isApiError, type KubernetesClient } from "./client";

/**
 * What tells a cluster from all others: the UID of its namespace `kube-system`, as is usual in the field.
 *
 * @returns undefined where that may not be read
 */
async function clusterUid(client: Pick<KubernetesClient, "get">): Promise<string | undefined> {
  try {
    return (await client.get({ apiVersion: "v1", kind: "Namespace" }, "kube-system"))?.metadata.uid;
  } catch (error) {
    if (isApiError(error, 403)) return undefined;
    throw error;
  }
}

/** A cluster, as what it records outside of itself names it. */
export interface Cluster {
  /** A cluster that is rebuilt has the same name as before. */
  name: string;
  /** See {@link clusterUid}. It tells two living clusters of one name apart. */
  uid: string;
}

/**
 * The cluster's name is `KINDSTACK_CLUSTER`, or its UID.
 *
 * @returns undefined where the UID may not be read
 */
export async function clusterOf(client: Pick<KubernetesClient, "get">): Promise<Cluster | undefined> {
  const uid = await clusterUid(client);
  return uid === undefined ? undefined : { name: process.env.KINDSTACK_CLUSTER || uid, uid };
}

/** The right that {@link clusterUid} needs. */
export const CLUSTER_UID_RULE = {
  apiGroups: [""],
  resources: ["namespaces"],
  resourceNames: ["kube-system"],
  verbs: ["get"],
};
