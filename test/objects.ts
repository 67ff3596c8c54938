import type { LiveObject, ManagedFieldsEntry, ObjectMeta } from "../providers/kubernetes/client";
import { CREATED_ANNOTATION, OWNER_ANNOTATION, OWNER_UID_LABEL, type Owner } from "../providers/kubernetes/ownership";
import type { Condition } from "../stacks/contract/condition";
import type { KindObject } from "../stacks/contract/object";
import type { TenantSpec } from "../stacks/kinds/tenant/schema";

/*
 * The objects that tests start from. Each is complete and valid; a test names what matters to it and nothing else.
 */

export const acme: Owner = { uid: "uid-acme", description: "Tenant.multitenancy.codereliant.io/acme" };
export const globex: Owner = { uid: "uid-globex", description: "Tenant.multitenancy.codereliant.io/globex" };

/** A namespace as the API server would return it. */
export function namespace(name: string, metadata: Partial<ObjectMeta> = {}): LiveObject {
  return {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name, uid: `uid-of-${name}`, resourceVersion: "100", ...metadata } as LiveObject["metadata"],
  };
}

/** An object as the API server would return it, of what matters to a test. */
export function liveObject({
  metadata,
  ...fields
}: { metadata?: Partial<ObjectMeta> } & Record<string, unknown>): LiveObject {
  const { name = "a", uid = `uid-of-${name}`, resourceVersion = "100", ...others } = metadata ?? {};
  return { apiVersion: "v1", kind: "Pod", ...fields, metadata: { name, uid, resourceVersion, ...others } };
}

/** The marks of an object that Kindstack created for an owner, or adopted. */
export function marksOf(owner: Owner, { created }: { created: boolean }): Pick<ObjectMeta, "labels" | "annotations"> {
  return {
    labels: { [OWNER_UID_LABEL]: owner.uid },
    annotations: { [OWNER_ANNOTATION]: owner.description, ...(created && { [CREATED_ANNOTATION]: "true" }) },
  };
}

/** What the API server notes of fields that a manager applied. */
export function applied(manager: string, fieldsV1: Record<string, unknown>): ManagedFieldsEntry {
  return { manager, operation: "Apply", fieldsV1 };
}

/** A Tenant with one namespace. */
export function tenantObject(
  spec: Partial<TenantSpec> = {},
  metadata: Partial<ObjectMeta> = {},
): KindObject<TenantSpec> & LiveObject {
  return {
    apiVersion: "multitenancy.codereliant.io/v1",
    kind: "Tenant",
    metadata: {
      name: "acme",
      uid: acme.uid,
      resourceVersion: "10",
      generation: 1,
      ...metadata,
    } as KindObject["metadata"],
    spec: { adminEmail: "admin@acme.example", namespaces: ["acme-dev"], ...spec },
  };
}

/** A Memcached of two replicas. */
export function memcachedObject(metadata: Partial<ObjectMeta> = {}): KindObject & LiveObject {
  const type = { apiVersion: "cache.example.com/v1alpha1", kind: "Memcached" };
  const named = { name: "cache", namespace: "default", uid: "uid-cache", resourceVersion: "1", generation: 1 };
  const spec = { size: 2, containerPort: 11211 };
  return { ...type, metadata: { ...named, ...metadata } as KindObject["metadata"], spec };
}

type Told = `${string}=${Condition["status"]} ${string}`;

/** The object with these conditions, such as `Ready=True Succeeded`. */
export function withConditions<T extends LiveObject>(object: T, ...conditions: Told[]): T {
  const { generation = 0 } = object.metadata;
  return {
    ...object,
    status: {
      observedGeneration: generation,
      conditions: conditions.map((text) => {
        const [type, status, reason] = text.split(/[= ]/);
        const written = { observedGeneration: generation, lastTransitionTime: "2026-01-01T00:00:00Z" };
        return { type, status, reason, message: `${reason} is so`, ...written };
      }),
    },
  };
}
