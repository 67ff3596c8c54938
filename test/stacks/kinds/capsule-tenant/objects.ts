import fs from "node:fs";
import path from "node:path";
import { parse } from "yaml";
import type { LiveObject, ObjectMeta } from "../../../../providers/kubernetes/client";
import type { Owner } from "../../../../providers/kubernetes/ownership";
import type { KindObject } from "../../../../stacks/contract/object";
import { capsuleTenant } from "../../../../stacks/kinds/capsule-tenant/kind";
import type { CapsuleTenantSpec } from "../../../../stacks/kinds/capsule-tenant/schema";
import { namespace } from "../../../objects";

/** The source's own sample. */
export const sample = parse(fs.readFileSync(path.join(capsuleTenant.directory, "sample.yaml"), "utf8")) as {
  spec: CapsuleTenantSpec;
} & LiveObject;

export const oil: Owner = { uid: "uid-oil", description: "Tenant.capsule.clastix.io/oil" };

/** The tenant oil, owned by alice. */
export function oilTenant(spec: Partial<CapsuleTenantSpec> = {}): KindObject<CapsuleTenantSpec> & LiveObject {
  return {
    apiVersion: "capsule.clastix.io/v1alpha1",
    kind: "Tenant",
    metadata: { name: "oil", uid: oil.uid, resourceVersion: "10", generation: 1 },
    spec: { owner: { kind: "User", name: "alice" }, ...spec },
  };
}

/** The tenant oil by another name. */
export function tenantNamed(name: string, spec: Partial<CapsuleTenantSpec> = {}): ReturnType<typeof oilTenant> {
  const tenant = oilTenant(spec);
  return { ...tenant, metadata: { ...tenant.metadata, name, uid: `uid-${name}` } };
}

/** A namespace that carries a tenant's label. */
export function labelled(name: string, tenant = "oil", metadata: Partial<ObjectMeta> = {}): LiveObject {
  return namespace(name, { labels: { "capsule.clastix.io/tenant": tenant }, ...metadata });
}

/** A namespace in which the API server has been seen to enforce the tenant's policy. */
export function enforced(name: string, tenantUid = oil.uid): LiveObject {
  return labelled(name, "oil", {
    labels: { "capsule.clastix.io/tenant": "oil" },
    annotations: { "kindstack.dev/enforced-tenant": tenantUid },
  });
}

/** The ResourceQuotas of a tenant in a namespace, as the API server counts them. */
export function counted(namespace: string, { resourceQuotas = [] }: Partial<CapsuleTenantSpec>): LiveObject[] {
  return resourceQuotas.map(({ hard }, index) => ({
    ...object("ResourceQuota", namespace, `capsule-oil-${index}`),
    status: { hard },
  }));
}

/** The first ResourceQuota of the tenant oil in a namespace, by what it allows and what the API server has counted. */
export function quotaIn(
  namespace: string,
  hard: Record<string, unknown>,
  status: object,
  metadata: Partial<ObjectMeta> = {},
): LiveObject {
  const labels = { "capsule.clastix.io/tenant": "oil", "capsule.clastix.io/resource-quota": "0" };
  const made = object("ResourceQuota", namespace, "capsule-oil-0", labels);
  return { ...made, metadata: { ...made.metadata, uid: `uid-of-${namespace}`, ...metadata }, spec: { hard }, status };
}

/** Something that Kindstack made in a namespace. */
export function object(kind: string, namespace: string, name: string, labels: Record<string, string> = {}): LiveObject {
  return { apiVersion: "v1", kind, metadata: { name, namespace, uid: `uid-${name}`, resourceVersion: "1", labels } };
}
