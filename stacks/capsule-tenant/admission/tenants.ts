import type { LiveObject } from "../../../providers/kubernetes/index";
import type { AdmissionView } from "../../contract/index";
import { TENANT_LABEL } from "../labels";
import type { CapsuleTenant } from "../schema";

export function tenantNamed(name: string, view: AdmissionView): (CapsuleTenant & LiveObject) | undefined {
  return view.get("tenants", name) as (CapsuleTenant & LiveObject) | undefined;
}

/** The name of the tenant that a namespace is of. */
export function tenantNameOf(namespace: string, view: AdmissionView): string | undefined {
  return view.get("namespaces", namespace)?.metadata.labels?.[TENANT_LABEL];
}

/** The tenant that a namespace is of. */
export function tenantOf(namespace: string, view: AdmissionView): CapsuleTenant | undefined {
  const name = tenantNameOf(namespace, view);
  return name === undefined ? undefined : tenantNamed(name, view);
}
