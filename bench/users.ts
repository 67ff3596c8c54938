import fs from "node:fs/promises";
import path from "node:path";
import { KubeConfig } from "@kubernetes/client-node";
import { layoutOf } from "../src/dev/layout";
import { kubeconfigOf } from "../src/dev/pki";
import { issueCertificate } from "../src/tls/certificate";

const LIFETIME_MS = 24 * 3_600_000;

/** A kubeconfig for a user without administrator rights, with a certificate signed by the development cluster's CA. */
export async function userConfig(directory: string, name: string, group?: string): Promise<KubeConfig> {
  const { kubeconfig, pki } = layoutOf(directory);
  const ca = {
    certificate: await fs.readFile(path.join(pki, "ca.crt"), "utf8"),
    key: await fs.readFile(path.join(pki, "ca.key"), "utf8"),
  };
  const user = await issueCertificate(ca, {
    subject: { CN: name, ...(group !== undefined && { O: group }) },
    usages: ["client"],
    notAfter: new Date(Date.now() + LIFETIME_MS),
  });
  const administrator = new KubeConfig();
  administrator.loadFromFile(kubeconfig);
  return kubeconfigOf(administrator.getCurrentCluster()?.server ?? "", ca, user);
}
