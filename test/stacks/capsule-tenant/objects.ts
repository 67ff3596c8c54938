import fs from "node:fs";
import path from "node:path";
import { parse } from "yaml";
import type { LiveObject, ObjectMeta } from "../../../providers/kubernetes/client";
import type { Owner } from "../../../providers/kubernetes/ownership";
import { capsuleTenant } from "../../../stacks/capsule-tenant/kind";
import type { CapsuleTenantSpec } from "../../../stacks/capsule-tenant/schema";
import type { KindObject } from "../../../stacks/contract/object";
import { namespace } from "../../objects";

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

/** A namespace that carries a tenant's label. */
export function labelled(name: string, tenant = "oil", metadata: Partial<ObjectMeta> = {}): LiveObject {
  return namespace(name, { labels: { "capsule.clastix.io/tenant": tenant }, ...metadata });
}
