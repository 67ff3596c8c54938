import type { Manifest } from "../../../../providers/kubernetes/index";
import { type KindObject, policyBinding } from "../../../contract/index";
import { TENANT_LABEL } from "../labels";

/** Binds a policy to the namespaces of one tenant. It is part of the tenant's stack. */
export function tenantBinding(policyName: string, { metadata: { name } }: KindObject, spec: object = {}): Manifest {
  const matchResources = { namespaceSelector: { matchLabels: { [TENANT_LABEL]: name } } };
  return policyBinding(policyName, `${policyName}-${name}`, { matchResources, ...spec });
}
