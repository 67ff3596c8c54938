import fs from "node:fs";
import { stringify } from "yaml";
import type { Credential, Pki } from "./pki";

/** Writes a kubeconfig that holds its certificates and key itself, for its owner's eyes only. */
export function writeKubeconfig(file: string, server: string, pki: Pki, credential: Credential): void {
  const name = "kindstack-dev";
  const base64 = (text: string) => Buffer.from(text).toString("base64");
  const config = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name, cluster: { server, "certificate-authority-data": base64(pki.ca.certificate) } }],
    users: [
      {
        name,
        user: {
          "client-certificate-data": base64(credential.certificate),
          "client-key-data": base64(credential.key),
        },
      },
    ],
    contexts: [{ name, context: { cluster: name, user: name } }],
    "current-context": name,
  };
  fs.writeFileSync(file, stringify(config), { mode: 0o600 });
}
