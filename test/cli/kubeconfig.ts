import fs from "node:fs";

/** Writes a kubeconfig with this user, of an API server that does not answer. */
export function writeKubeconfig(file: string, user: object): void {
  const config = {
    ...{ apiVersion: "v1", kind: "Config", "current-context": "dev" },
    clusters: [{ name: "dev", cluster: { server: "https://127.0.0.1:1" } }],
    users: [{ name: "dev", user }],
    contexts: [{ name: "dev", context: { cluster: "dev", user: "dev" } }],
  };
  fs.writeFileSync(file, JSON.stringify(config));
}
