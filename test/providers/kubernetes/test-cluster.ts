import { randomBytes } from "node:crypto";
import { KubeConfig } from "@kubernetes/client-node";
import { vi } from "vitest";
import {
  KubernetesClient,
  known,
  type LiveObject,
  type Manifest,
  type ResourceType,
} from "../../../providers/kubernetes/client";
import { disconnectKubernetes } from "../../../providers/kubernetes/connection";

export const NAMESPACE: ResourceType = { apiVersion: "v1", kind: "Namespace", plural: "namespaces", namespaced: false };
export const CONFIG_MAP: ResourceType = { apiVersion: "v1", kind: "ConfigMap", plural: "configmaps", namespaced: true };
export const ROLE_BINDING: ResourceType = {
  apiVersion: "rbac.authorization.k8s.io/v1",
  kind: "RoleBinding",
  plural: "rolebindings",
  namespaced: true,
};

/** A client of the cluster that integration tests share, and a namespace of the test file's own. */
export class TestCluster {
  readonly client: KubernetesClient;
  readonly namespace = `test-${randomBytes(6).toString("hex")}`;
  readonly #kubeconfig: string;

  private constructor(kubeconfig: string) {
    this.#kubeconfig = kubeconfig;
    this.client = new KubernetesClient(this.config());
  }

  /** Creates the namespace, and makes the cluster the one that the providers use. */
  static async open({ kubeconfig }: { kubeconfig: string }): Promise<TestCluster> {
    const cluster = new TestCluster(kubeconfig);
    await cluster.client.create({
      apiVersion: "v1",
      kind: "Namespace",
      metadata: { name: cluster.namespace },
    });
    vi.stubEnv("KUBECONFIG", kubeconfig);
    return cluster;
  }

  /** A kubeconfig of the cluster's administrator, to be changed at will. */
  config(): KubeConfig {
    const config = new KubeConfig();
    config.loadFromFile(this.#kubeconfig);
    return config;
  }

  /** A ConfigMap in the namespace. */
  configMap(name: string, data: Record<string, string> = {}, metadata: Manifest["metadata"] = {}): Manifest {
    return { apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace: this.namespace, ...metadata }, data };
  }

  /** The ConfigMap as it is now. */
  find(name: string): Promise<LiveObject | undefined> {
    return known(this.client.get(CONFIG_MAP, name, this.namespace));
  }

  /** What another client does: a server-side apply with another manager, or as `kubectl edit` would, a patch. */
  async applyAs(fieldManager: string, manifest: Manifest): Promise<LiveObject> {
    return (await this.client.apply(manifest, { fieldManager })).object;
  }

  async edit(name: string, patch: object): Promise<void> {
    const path = `/api/v1/namespaces/${this.namespace}/configmaps/${name}`;
    await this.client.json("PATCH", path, {
      query: { fieldManager: "kubectl-edit" },
      body: patch,
      contentType: "application/merge-patch+json",
    });
  }

  async close(): Promise<void> {
    await this.client.delete(NAMESPACE, this.namespace);
    await this.client.close();
    await disconnectKubernetes();
    vi.unstubAllEnvs();
  }
}
