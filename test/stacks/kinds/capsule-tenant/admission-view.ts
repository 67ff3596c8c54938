import type { LiveObject, Manifest } from "../../../../providers/kubernetes/client";
import { Store } from "../../../../src/cache/store";
import type { AdmissionRequest, AdmissionView } from "../../../../stacks/contract/admission";
import { objectKey } from "../../../../stacks/contract/object";
import { capsuleTenantAdmission } from "../../../../stacks/kinds/capsule-tenant/admission/admission";

type Watch =
  | "tenants"
  | "namespaces"
  | "quotas"
  | "ingresses"
  | "roleBindings"
  | "clusterRoleBindings"
  | "otherTenants";

class Cache extends Store {
  put(object: LiveObject): void {
    this.set(objectKey(object.metadata), object);
  }
}

/** What the caches of the webhooks show, with the indexes that they really have. */
export function admissionView(
  objects: Partial<Record<Watch, readonly LiveObject[]>>,
  client: Partial<AdmissionView["client"]> = {},
): AdmissionView {
  const caches = new Map<string, Cache>();
  for (const [watch, { indexers }] of Object.entries(capsuleTenantAdmission().watches)) {
    const cache = new Cache(indexers);
    caches.set(watch, cache);
    for (const object of objects[watch as keyof typeof objects] ?? []) cache.put(object);
  }
  const cacheOf = (watch: string) => caches.get(watch) as Cache;
  return {
    client: client as AdmissionView["client"],
    get: (watch, key) => cacheOf(watch).get(key),
    byIndex: (watch, index, value) => cacheOf(watch).byIndex(index, value),
    version: () => "1",
    follow: async () => (async function* () {})(),
    warn() {},
  };
}

/** The request of alice to create an object. */
export function creation(object: Manifest, more: Partial<AdmissionRequest> = {}): AdmissionRequest {
  const { name = "", namespace = "" } = object.metadata;
  return {
    ...{ uid: "1", operation: "CREATE", resource: { group: "", name: `${object.kind.toLowerCase()}s` } },
    ...{ user: { username: "alice", groups: [] }, name, namespace, object, dryRun: false },
    ...more,
  };
}
