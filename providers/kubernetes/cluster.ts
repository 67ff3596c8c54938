import { isApiError, type KubernetesClient, known } from "./client";

/** A cluster, as what it records outside of itself names it. */
export interface Cluster {
  /** A cluster that is rebuilt has the same name as before. */
  name: string;
  /** The UID of its namespace `kube-system`, as is usual in the field. It tells two living clusters of one name apart. */
  uid: string;
}

/** The cluster's name is `KINDSTACK_CLUSTER`, or its UID. @returns undefined where the UID may not be read */
export async function clusterOf(client: Pick<KubernetesClient, "get">): Promise<Cluster | undefined> {
  try {
    const uid = (await known(client.get({ apiVersion: "v1", kind: "Namespace" }, "kube-system")))?.metadata.uid;
    return uid === undefined ? undefined : { name: process.env.KINDSTACK_CLUSTER || uid, uid };
  } catch (error) {
    if (isApiError(error, 403)) return undefined;
    throw error;
  }
}

/** The right that {@link clusterOf} needs. */
export const CLUSTER_UID_RULE = {
  apiGroups: [""],
  resources: ["namespaces"],
  resourceNames: ["kube-system"],
  verbs: ["get"],
};
