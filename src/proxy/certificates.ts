import type { KubernetesClient } from "../../providers/kubernetes/client";

/** What the listener proves itself with, and by what it knows users; all as PEM. */
export interface ListenerCertificates {
  cert: string;
  key: string;
  /** Those whose certificates are users'. Without, users have tokens only. */
  clientCa: string | undefined;
}

const CONFIG_MAP = { apiVersion: "v1", kind: "ConfigMap" } as const;

/** The CA of the API server's own users, which it publishes for those who have to know users as it does. */
export async function publishedClientCa(client: Pick<KubernetesClient, "get">): Promise<string | undefined> {
  const published = await client.get(CONFIG_MAP, "extension-apiserver-authentication", "kube-system");
  const ca = (published?.data as Record<string, string> | undefined)?.["client-ca-file"];
  return ca || undefined;
}
