import fs from "node:fs/promises";
import tls from "node:tls";
import { TerminalError } from "../../providers/errors";
import type { KubernetesClient, ResourceType } from "../../providers/kubernetes/client";

/** What the listener proves itself with, and by what it knows users; all as PEM. */
export interface ListenerCertificates {
  cert: string;
  key: string;
  /** Those whose certificates are users'. Without, users have tokens only. */
  clientCa: string | undefined;
}

const CONFIG_MAP: ResourceType = { apiVersion: "v1", kind: "ConfigMap", plural: "configmaps", namespaced: true };

/** Reads the certificate of a server and its key. @throws TerminalError `Misconfigured` when they do not fit together */
export async function readServingCertificate(
  certFile: string,
  keyFile: string,
): Promise<{ cert: string; key: string }> {
  const [cert, key] = [await fs.readFile(certFile, "utf8"), await fs.readFile(keyFile, "utf8")];
  try {
    tls.createSecureContext({ cert, key });
  } catch (error) {
    throw new TerminalError("Misconfigured", `${certFile} and ${keyFile} are no certificate and its key: ${error}`);
  }
  return { cert, key };
}

/** The CA of the API server's own users, which it publishes for those who have to know users as it does. */
export async function publishedClientCa(client: Pick<KubernetesClient, "get">): Promise<string | undefined> {
  const published = await client.get(CONFIG_MAP, "extension-apiserver-authentication", "kube-system");
  const ca = (published?.data as Record<string, string> | undefined)?.["client-ca-file"];
  return ca || undefined;
}
