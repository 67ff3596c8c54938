import type { LiveObject } from "../../../../providers/kubernetes/client";
import { Store } from "../../../../src/cache/store";
import type { AdmissionView } from "../../../../stacks/contract/admission";
import { objectKey } from "../../../../stacks/contract/object";
import { capsuleTenantAdmission } from "../../../../stacks/kinds/capsule-tenant/admission/admission";

class Cache extends Store {
  put(object: LiveObject): void {
    this.set(objectKey(object.metadata), object);
  }
}

/** What the caches of the webhooks show, with the indexes that they really have. */
export function admissionView(
  objects: Partial<Record<"tenants" | "namespaces" | "quotas" | "ingresses", readonly LiveObject[]>>,
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
