import { isApiError, type KubernetesClient } from "./client";

/**
 * What tells a cluster from all others: the UID of its namespace `kube-system`, as is usual in the field.
 *
 * @returns undefined where that may not be read
 */
export async function clusterUid(client: Pick<KubernetesClient, "get">): Promise<string | undefined> {
  try {
    return (await client.get({ apiVersion: "v1", kind: "Namespace" }, "kube-system"))?.metadata.uid;
  } catch (error) {
    if (isApiError(error, 403)) return undefined;
    throw error;
  }
}

/** The right that {@link clusterUid} needs. */
export const CLUSTER_UID_RULE = {
  apiGroups: [""],
  resources: ["namespaces"],
  resourceNames: ["kube-system"],
  verbs: ["get"],
};
