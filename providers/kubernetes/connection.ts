import { errorMessageOf, TerminalError } from "../errors";
import type { CallContext } from "../provider";
import { readOnce, type Snapshot } from "../snapshot";
import { KubernetesClient, type Lookup } from "./client";
import { loadKubeconfig } from "./kubeconfig";
import type { Manifest } from "./types";

let shared: KubernetesClient | undefined;

/**
 * The process's one client, of the kubeconfig that `KUBECONFIG` or `~/.kube/config` names, or in a Pod of its service
 * account. Providers ask for it when they run, so that no credential is ever part of a resource.
 */
export function connectKubernetes(): KubernetesClient {
  shared ??= new KubernetesClient(loadKubeconfig());
  return shared;
}

/** The client for a provider's call, under the call's fence. */
export function clientOf(context: CallContext): KubernetesClient {
  const client = connectKubernetes();
  return context === undefined ? client : client.within(context.fence);
}

/** Looks for the object that a manifest names, unless a preview has done so. */
export function lookUp(
  client: Pick<KubernetesClient, "find">,
  manifest: Manifest,
  snapshot: Snapshot | undefined,
): Promise<Lookup> {
  const { apiVersion, kind, metadata } = manifest;
  const key = JSON.stringify([apiVersion, kind, metadata.namespace, metadata.name]);
  return readOnce(snapshot, key, () => client.find(manifest));
}

/** For objects that name no namespace: the kubeconfig's, as kubectl takes it. */
export function kubeconfigNamespace(): string {
  try {
    return connectKubernetes().namespace;
  } catch {
    return "default"; // no kubeconfig that can be read
  }
}

/** Works with the process's client as a command does, and closes it. */
export async function withKubernetes<T>(work: (client: KubernetesClient) => Promise<T>): Promise<T> {
  try {
    return await work(opened().patient());
  } finally {
    await disconnectKubernetes();
  }
}

function opened(): KubernetesClient {
  try {
    return connectKubernetes();
  } catch (error) {
    if (error instanceof TerminalError) throw error;
    throw new TerminalError("Misconfigured", `the kubeconfig cannot be read: ${errorMessageOf(error)}`);
  }
}

export async function disconnectKubernetes(): Promise<void> {
  const client = shared;
  shared = undefined;
  await client?.close();
}
