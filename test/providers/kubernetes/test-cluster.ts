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
const namespaced = (apiVersion: string, kind: string, plural: string): ResourceType => {
  return { apiVersion, kind, plural, namespaced: true };
};
export const CONFIG_MAP = namespaced("v1", "ConfigMap", "configmaps");
export const ROLE_BINDING = namespaced("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings");
export const POD = namespaced("v1", "Pod", "pods");
export const CRD = { apiVersion: "apiextensions.k8s.io/v1", kind: "CustomResourceDefinition" };

/** What keeps an object that is deleted, until `removeFinalizers`. */
export const HELD = { finalizers: ["example.com/held"] };

/** The definition of a namespaced kind, whose objects hold anything. The last of the versions is stored. */
export function definition(group: string, kind: string, versions = ["v1"], served = versions): Manifest {
  const singular = kind.toLowerCase();
  const schema = { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } };
  return {
    ...CRD,
    metadata: { name: `${singular}s.${group}` },
    spec: {
      group,
      scope: "Namespaced",
      names: { kind, listKind: `${kind}List`, plural: `${singular}s`, singular },
      versions: versions.map((name) => ({
        ...{ name, served: served.includes(name), storage: name === versions.at(-1) },
        ...{ schema, subresources: { status: {} } },
      })),
    },
  };
}

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

  /** An object in the namespace. */
  manifest(
    { apiVersion, kind }: { apiVersion: string; kind: string },
    name: string,
    fields: object = {},
    metadata: Manifest["metadata"] = {},
  ): Manifest {
    return { apiVersion, kind, metadata: { name, namespace: this.namespace, ...metadata }, ...fields };
  }

  /** A ConfigMap in the namespace. */
  configMap(name: string, data: Record<string, string> = {}, metadata: Manifest["metadata"] = {}): Manifest {
    return this.manifest(CONFIG_MAP, name, { data }, metadata);
  }

  /** A Pod with one container. */
  pod(name: string, image = "a:1", metadata: Manifest["metadata"] = {}): Manifest {
    return this.manifest(POD, name, { spec: { containers: [{ name: "a", image }] } }, metadata);
  }

  /** A Deployment whose Pods have one container. */
  deployment(name: string, replicas: number, container: object = {}): Manifest {
    const labels = { app: name };
    const template = { metadata: { labels }, spec: { containers: [{ name, image: "a:1", ...container }] } };
    const spec = { replicas, selector: { matchLabels: labels }, template };
    return this.manifest({ apiVersion: "apps/v1", kind: "Deployment" }, name, { spec });
  }

  /** The object as it is now. */
  find(name: string, type: ResourceType = CONFIG_MAP): Promise<LiveObject | undefined> {
    return known(this.client.get(type, name, this.namespace));
  }

  remove(name: string, type: ResourceType = CONFIG_MAP): Promise<unknown> {
    return this.client.delete(type, name, this.namespace);
  }

  async removeFinalizers(name: string, type: ResourceType = CONFIG_MAP): Promise<void> {
    await this.client.mergePatch(type, name, this.namespace, { metadata: { finalizers: null } });
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
