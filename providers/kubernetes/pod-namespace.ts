import fs from "node:fs";

const NAMESPACE_FILE = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/** The namespace of the Pod that this process runs in; `undefined` outside of one, or without a service account's token. */
export function podNamespace(): string | undefined {
  try {
    return fs.readFileSync(NAMESPACE_FILE, "utf8").trim();
  } catch {
    return undefined;
  }
}
