import { randomBytes } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { parse } from "yaml";
import type { Manifest, ResourceType } from "../../providers/kubernetes/client";
import type { CapsuleTenantSpec } from "../../stacks/kinds/capsule-tenant/schema";
import type { MemcachedSpec } from "../../stacks/kinds/memcached/schema";
import type { PostgresWriterSpec } from "../../stacks/kinds/postgres-writer/schema";
import type { TenantSpec } from "../../stacks/kinds/tenant/schema";

/* The types and the manifests that tests start from. A test names what matters to it. */

const namespaced = (apiVersion: string, kind: string, plural: string): ResourceType => ({
  ...{ apiVersion, kind, plural },
  namespaced: true,
});
const clusterScoped = (apiVersion: string, kind: string, plural: string): ResourceType => ({
  ...{ apiVersion, kind, plural },
  namespaced: false,
});
export const NAMESPACE = clusterScoped("v1", "Namespace", "namespaces");
export const ROLE_BINDING = namespaced("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings");
export const TENANT = clusterScoped("multitenancy.codereliant.io/v1", "Tenant", "tenants");
export const CAPSULE_TENANT: ResourceType = { ...TENANT, apiVersion: "capsule.clastix.io/v1alpha1" };
export const POSTGRES_WRITER = namespaced("demo.yash.com/v1", "PostgresWriter", "postgreswriters");
export const POD_SET = namespaced("batch.tutorial.kubebuilder.io/v1", "PodSet", "podsets");
export const MEMCACHED = namespaced("cache.example.com/v1alpha1", "Memcached", "memcacheds");
export const POD = namespaced("v1", "Pod", "pods");
export const DEPLOYMENT = namespaced("apps/v1", "Deployment", "deployments");
export const CONFIG_MAP = namespaced("v1", "ConfigMap", "configmaps");
export const LIMIT_RANGE = namespaced("v1", "LimitRange", "limitranges");
export const RESOURCE_QUOTA = namespaced("v1", "ResourceQuota", "resourcequotas");
export const NETWORK_POLICY = namespaced("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies");

/** The kinds that the operator serves. */
export const KINDS = [TENANT, CAPSULE_TENANT, POSTGRES_WRITER, POD_SET, MEMCACHED];

/** A name that nothing else has. */
export function uniqueName(prefix: string): string {
  return `${prefix}-${randomBytes(4).toString("hex")}`;
}

type Fields = Record<string, unknown>;

/** An object of a type, in a namespace where one is named. */
export function objectOf(
  type: Pick<ResourceType, "apiVersion" | "kind">,
  name: string,
  namespace?: string,
  fields: Fields = {},
): Manifest {
  const { apiVersion, kind } = type;
  return { apiVersion, kind, metadata: { name, ...(namespace !== undefined && { namespace }) }, ...fields };
}

/** A Tenant with one namespace of its own name, where a test does not say otherwise. */
export function tenant(name: string, spec: Partial<TenantSpec> = {}): Manifest {
  const usual = { adminEmail: "admin@example.com", adminGroups: ["admins"], userGroups: ["users"], namespaces: [name] };
  return objectOf(TENANT, name, undefined, { spec: { ...usual, ...spec } });
}

/** A Tenant of Capsule's, owned by a user of its own name, where a test does not say otherwise. */
export function capsuleTenant(name: string, spec: Partial<CapsuleTenantSpec> = {}): Manifest {
  return objectOf(CAPSULE_TENANT, name, undefined, { spec: { owner: { kind: "User", name }, ...spec } });
}

export function postgresWriter(name: string, spec: Partial<PostgresWriterSpec>, namespace = "default"): Manifest {
  const usual = { table: "students", name: "alex", age: 23, country: "canada" };
  return objectOf(POSTGRES_WRITER, name, namespace, { spec: { ...usual, ...spec } });
}

export function podSet(name: string, replicas: number, namespace = "default"): Manifest {
  return objectOf(POD_SET, name, namespace, { spec: { replicas } });
}

export function memcached(name: string, spec: Partial<MemcachedSpec> = {}, namespace = "default"): Manifest {
  return objectOf(MEMCACHED, name, namespace, { spec });
}

/** What names the Deployment of a Memcached. */
export function deploymentOf({ metadata: { name = "", namespace = "" } }: Pick<Manifest, "metadata">): Manifest {
  return objectOf(DEPLOYMENT, name, namespace);
}

export function podIn(namespace: string, name: string, image = "nginx"): Manifest {
  return objectOf(POD, name, namespace, { spec: { containers: [{ name: "app", image }] } });
}

/** A Deployment of one container. */
export function deploymentIn(namespace: string, name: string, replicas = 1): Manifest {
  const labels = { app: name };
  const template = { metadata: { labels }, spec: { containers: [{ name: "app", image: "nginx" }] } };
  return objectOf(DEPLOYMENT, name, namespace, { spec: { replicas, selector: { matchLabels: labels }, template } });
}

export function configMap(name: string, namespace: string, fields: Fields = {}): Manifest {
  return objectOf(CONFIG_MAP, name, namespace, fields);
}

export function namespace(name: string, metadata: Partial<Manifest["metadata"]> = {}): Manifest {
  return { ...objectOf(NAMESPACE, name), metadata: { name, ...metadata } };
}

/** A namespace with the label that puts it into a Tenant of Capsule's. */
export function namespaceOf(tenant: string, name = tenant): Manifest {
  return namespace(name, { labels: { "capsule.clastix.io/tenant": tenant } });
}

/** The sample of a kind, by its folder. */
export function sampleFile(folder: string): { file: string; manifest: Manifest } {
  const file = path.resolve(__dirname, "../../stacks/kinds", folder, "sample.yaml");
  return { file, manifest: parse(fs.readFileSync(file, "utf8")) };
}
