import { randomBytes } from "node:crypto";
import { KubeConfig } from "@kubernetes/client-node";
import { beforeAll, vi } from "vitest";
import {
  KubernetesClient,
  known,
  type LiveObject,
  type Manifest,
  type ResourceType,
} from "../../../providers/kubernetes/client";
import { disconnectKubernetes } from "../../../providers/kubernetes/connection";
import { controlPlane } from "../../control-plane";

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
  readonly #clients: KubernetesClient[] = [];

  private constructor(kubeconfig: string) {
    this.#kubeconfig = kubeconfig;
    this.client = new KubernetesClient(this.config());
  }

  /** A cluster for all tests of a file, which is closed after their hooks. */
  static use(): TestCluster {
    const cluster = new TestCluster(controlPlane().kubeconfig);
    beforeAll(async () => {
      await cluster.#begin();
      return () => cluster.close();
    });
    return cluster;
  }

  static async open({ kubeconfig }: { kubeconfig: string }): Promise<TestCluster> {
    const cluster = new TestCluster(kubeconfig);
    await cluster.#begin();
    return cluster;
  }

  /** Creates the namespace, and makes the cluster the one that the providers use. */
  async #begin(): Promise<void> {
    await this.client.create({ apiVersion: "v1", kind: "Namespace", metadata: { name: this.namespace } });
    vi.stubEnv("KUBECONFIG", this.#kubeconfig);
  }

  /** A kubeconfig of the cluster's administrator, to be changed at will. */
  config(): KubeConfig {
    const config = new KubeConfig();
    config.loadFromFile(this.#kubeconfig);
    return config;
  }

  /** A client that acts as this user, until the cluster is closed. */
  as(user: string): KubernetesClient {
    const config = this.config();
    config.users = config.users.map((known) => ({ ...known, impersonateUser: user }));
    const client = new KubernetesClient(config);
    this.#clients.push(client);
    return client;
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
    for (const client of [...this.#clients, this.client]) await client.close();
    await disconnectKubernetes();
    vi.unstubAllEnvs();
  }
}
