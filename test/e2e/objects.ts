import { randomBytes } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { KubeConfig } from "@kubernetes/client-node";
import { parse } from "yaml";
import {
  isApiError,
  KubernetesClient,
  known,
  type LiveObject,
  type Manifest,
  type ResourceType,
} from "../../providers/kubernetes/client";
import { eventually } from "../../src/testing/eventually";
import { RECONCILE_ANNOTATION } from "../../stacks/contract/annotations";
import { type Condition, findCondition } from "../../stacks/contract/condition";
import { statusOf } from "../../stacks/contract/kind";
import type { CapsuleTenantSpec } from "../../stacks/kinds/capsule-tenant/schema";
import type { MemcachedSpec } from "../../stacks/kinds/memcached/schema";
import type { PostgresWriterSpec } from "../../stacks/kinds/postgres-writer/schema";
import type { TenantSpec } from "../../stacks/kinds/tenant/schema";
import { controlPlane } from "../control-plane";

const config = new KubeConfig();
config.loadFromFile(controlPlane().kubeconfig);
/** Acts as the cluster's administrator. */
export const client = new KubernetesClient(config);

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
const EVENT = namespaced("events.k8s.io/v1", "Event", "events");
/** The kinds that the operator serves. */
const KINDS = [TENANT, CAPSULE_TENANT, POSTGRES_WRITER, POD_SET, MEMCACHED];
export const CONFIG_MAP = namespaced("v1", "ConfigMap", "configmaps");
export const LIMIT_RANGE = namespaced("v1", "LimitRange", "limitranges");
export const RESOURCE_QUOTA = namespaced("v1", "ResourceQuota", "resourcequotas");
export const NETWORK_POLICY = namespaced("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies");
const TYPES = [
  NAMESPACE,
  ROLE_BINDING,
  POD,
  DEPLOYMENT,
  CONFIG_MAP,
  LIMIT_RANGE,
  RESOURCE_QUOTA,
  NETWORK_POLICY,
  ...KINDS,
];

/** A client other than Kindstack, as a field manager. */
const SOMEONE = "someone";

/** A name that nothing else has. */
export function uniqueName(prefix: string): string {
  return `${prefix}-${randomBytes(4).toString("hex")}`;
}

/** A Tenant with one namespace of its own name, where a test does not say otherwise. */
export function tenant(name: string, spec: Partial<TenantSpec> = {}): Manifest {
  return {
    apiVersion: TENANT.apiVersion,
    kind: TENANT.kind,
    metadata: { name },
    spec: {
      adminEmail: "admin@example.com",
      adminGroups: ["admins"],
      userGroups: ["users"],
      namespaces: [name],
      ...spec,
    },
  };
}

/** A Tenant of Capsule's, owned by a user of its own name, where a test does not say otherwise. */
export function capsuleTenant(name: string, spec: Partial<CapsuleTenantSpec> = {}): Manifest {
  return {
    apiVersion: CAPSULE_TENANT.apiVersion,
    kind: CAPSULE_TENANT.kind,
    metadata: { name },
    spec: { owner: { kind: "User", name }, ...spec },
  };
}

export function postgresWriter(name: string, spec: Partial<PostgresWriterSpec>, namespace = "default"): Manifest {
  return {
    apiVersion: POSTGRES_WRITER.apiVersion,
    kind: POSTGRES_WRITER.kind,
    metadata: { name, namespace },
    spec: { table: "students", name: "alex", age: 23, country: "canada", ...spec },
  };
}

export function podSet(name: string, replicas: number): Manifest {
  return {
    apiVersion: POD_SET.apiVersion,
    kind: POD_SET.kind,
    metadata: { name, namespace: "default" },
    spec: { replicas },
  };
}

export function memcached(name: string, spec: Partial<MemcachedSpec> = {}, namespace = "default"): Manifest {
  return { apiVersion: MEMCACHED.apiVersion, kind: MEMCACHED.kind, metadata: { name, namespace }, spec };
}

/** What names the Deployment of a Memcached. */
export function deploymentOf({ metadata: { name, namespace } }: Reference): Manifest {
  return {
    apiVersion: DEPLOYMENT.apiVersion,
    kind: DEPLOYMENT.kind,
    metadata: { name: name ?? "", namespace: namespace ?? "" },
  };
}

export function namespace(name: string, metadata: Partial<Manifest["metadata"]> = {}): Manifest {
  return { apiVersion: "v1", kind: "Namespace", metadata: { name, ...metadata } };
}

/** The sample of a kind, by its folder. */
export function sampleFile(folder: string): { file: string; manifest: Manifest } {
  const file = path.resolve(__dirname, "../../stacks/kinds", folder, "sample.yaml");
  return { file, manifest: parse(fs.readFileSync(file, "utf8")) };
}

/** What names an object: any manifest of it. */
type Reference = Pick<Manifest, "kind" | "metadata"> & { apiVersion?: string };

/** Applies a manifest as its author would. */
export async function apply(manifest: Manifest): Promise<LiveObject> {
  const { object } = await client.apply(manifest, { fieldManager: SOMEONE });
  return object;
}

/** Creates an object that does not exist; what `kubectl create`, and `kubectl apply` the first time, do. */
export async function create(manifest: Manifest): Promise<LiveObject> {
  return client.create(manifest);
}

/** Changes fields of an object as anyone may, by a JSON merge patch. */
export function edit(reference: Reference, patch: object): Promise<LiveObject> {
  return patchObject(reference, "application/merge-patch+json", patch);
}

/** Asks the operator for another update. @param value another one than before */
export function requestUpdate(reference: Reference, value: string): Promise<LiveObject> {
  return edit(reference, { metadata: { annotations: { [RECONCILE_ANNOTATION]: value } } });
}

/** Gives an object another spec, of which nothing of the former one is a part. */
export function replaceSpec(reference: Reference, spec: unknown): Promise<LiveObject> {
  return patchObject(reference, "application/json-patch+json", [{ op: "replace", path: "/spec", value: spec }]);
}

async function patchObject(reference: Reference, contentType: string, body: object): Promise<LiveObject> {
  const { apiVersion, plural } = await typeOf(reference);
  const { name, namespace } = reference.metadata;
  const group = apiVersion.includes("/") ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  return client.json("PATCH", `${group}${namespace ? `/namespaces/${namespace}` : ""}/${plural}/${name}`, {
    query: { fieldManager: SOMEONE },
    contentType,
    body,
  });
}

export async function find(reference: Reference): Promise<LiveObject | undefined> {
  const { name = "", namespace } = reference.metadata;
  return known(client.get(await typeOf(reference), name, namespace));
}

/** @throws when it does not exist */
export async function get(reference: Reference): Promise<LiveObject> {
  const object = await find(reference);
  if (object === undefined) throw new Error(`there is no ${reference.kind} ${reference.metadata.name}`);
  return object;
}

export async function remove(reference: Reference): Promise<void> {
  const { name = "", namespace } = reference.metadata;
  await client.delete(await typeOf(reference), name, namespace);
}

/** A token of a ServiceAccount. */
export async function tokenOf(namespace: string, serviceAccount: string): Promise<string> {
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${serviceAccount}/token`;
  const body = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: {} };
  return (await client.json<{ status: { token: string } }>("POST", path, { body })).status.token;
}

/** Waits until an object is gone. */
export async function untilGone(reference: Reference): Promise<void> {
  await eventually(async () => {
    const object = await find(reference);
    if (object !== undefined) throw new Error(`it is still there: ${JSON.stringify(object)}`);
  });
}

/** Deletes an object, and waits until it is gone. */
export async function removeUntilGone(reference: Reference): Promise<void> {
  await remove(reference);
  await untilGone(reference);
}

/** Waits until an object is Ready as it is now specified. */
export function untilReady(reference: Reference): Promise<LiveObject> {
  return untilCondition(reference, "Ready", "True");
}

/** Applies a manifest, and waits until its object is Ready. */
export async function applyUntilReady(manifest: Manifest): Promise<LiveObject> {
  await apply(manifest);
  return untilReady(manifest);
}

/** Makes an object, and waits until it is ready. @returns the name of its stack */
export async function stackOf(manifest: Manifest): Promise<string> {
  return statusOf(await applyUntilReady(manifest)).stack?.name ?? "";
}

/** Waits until an object's stack is as the object is now specified, whether or not what it made works. */
export function untilSynced(reference: Reference): Promise<LiveObject> {
  return untilCondition(reference, "Synced", "True");
}

/** Waits until a condition has this status for the present generation. */
export function untilCondition(
  reference: Reference,
  type: string,
  status: Condition["status"],
  reason?: string,
): Promise<LiveObject> {
  return eventually(async () => {
    const object = await get(reference);
    const condition = findCondition(statusOf(object).conditions, type);
    const current = condition?.observedGeneration === object.metadata.generation;
    if (!current || condition?.status !== status || (reason !== undefined && condition.reason !== reason)) {
      throw new Error(`${type} is not ${status} ${reason ?? ""}: ${JSON.stringify(object.status)}`);
    }
    return object;
  });
}

/** A condition of an object. @throws when it has none of this type */
export function conditionOf(object: LiveObject, type: string): Condition {
  const condition = findCondition(statusOf(object).conditions, type);
  if (condition === undefined) throw new Error(`there is no condition ${type}: ${JSON.stringify(object.status)}`);
  return condition;
}

/** The types of an object's conditions. */
export function conditionTypes(object: LiveObject): string[] {
  return (statusOf(object).conditions ?? []).map(({ type }) => type);
}

/** The Events about an object, those of cluster-scoped objects as well. */
export async function eventsAbout(object: LiveObject): Promise<LiveObject[]> {
  const { items } = await client.list(EVENT);
  return items.filter(({ regarding }) => (regarding as { uid?: string } | undefined)?.uid === object.metadata.uid);
}

/** Deletes all objects of the kinds that the operator serves, by force once it gets no further. */
export async function removeAllObjects(): Promise<void> {
  let left = await allObjects();
  await Promise.all(left.map(remove));
  while (left.length > 0) {
    const before = left.length;
    await eventually(async () => {
      left = await allObjects();
      if (left.length >= before) throw new Error(`${left.length} are left`);
    }).catch(() => Promise.all(left.map(release)));
  }
}

async function release(object: LiveObject): Promise<void> {
  try {
    await edit(object, { metadata: { finalizers: null } });
  } catch (error) {
    if (!isApiError(error, 404)) throw error; // it is gone
  }
}

async function allObjects(): Promise<LiveObject[]> {
  const lists = await Promise.all(
    KINDS.map((type) =>
      client.list(type).catch((error: unknown) => {
        if (isApiError(error, 404)) return { items: [] }; // its CRD is not installed
        throw error;
      }),
    ),
  );
  return lists.flatMap(({ items }) => items);
}

/** Of a reference without a version, the one that is known of its kind; the API server knows the others. */
async function typeOf({ apiVersion, kind }: Reference): Promise<ResourceType> {
  const named = TYPES.filter((known) => known.kind === kind);
  const type = named.find((known) => known.apiVersion === apiVersion);
  if (type !== undefined) return type;
  if (apiVersion !== undefined) return client.resourceType(apiVersion, kind);
  if (named[0] === undefined) throw new TypeError(`no type is known for the kind ${kind}`);
  return named[0];
}
