import { KubeConfig } from "@kubernetes/client-node";
import { KubernetesClient } from "./client";

let shared: KubernetesClient | undefined;

/**
 * The process's one client, of the kubeconfig that `KUBECONFIG` or `~/.kube/config` names, or in a Pod of its service
 * account. Providers call it when they run, so that no credential is ever part of a resource.
 */
export function connectKubernetes(): KubernetesClient {
  if (shared === undefined) {
    const config = new KubeConfig();
    config.loadFromDefault();
    shared = new KubernetesClient(config);
  }
  return shared;
}

export async function disconnectKubernetes(): Promise<void> {
  const client = shared;
  shared = undefined;
  await client?.close();
}
