import type { LiveObject } from "../../../../providers/kubernetes/index";
import type { AdmissionView } from "../../../contract/index";
import { TENANT_LABEL } from "../labels";
import type { CapsuleTenant } from "../schema";

/** A Tenant in the cache. */
export type LiveTenant = CapsuleTenant & LiveObject;

export function tenantNamed(name: string, view: AdmissionView): LiveTenant | undefined {
  return view.get("tenants", name) as LiveTenant | undefined;
}

export function tenantNameOf(namespace: string, view: AdmissionView): string | undefined {
  return view.get("namespaces", namespace)?.metadata.labels?.[TENANT_LABEL];
}

export function tenantOf(namespace: string, view: AdmissionView): LiveTenant | undefined {
  const name = tenantNameOf(namespace, view);
  return name === undefined ? undefined : tenantNamed(name, view);
}
