import type { LiveObject, Manifest } from "../../../../providers/kubernetes/index";
import type { AdmissionView } from "../../../contract/index";
import { TENANT_LABEL } from "../labels";
import type { CapsuleTenant, CapsuleTenantSpec } from "../schema";

/** A Tenant in the cache. */
export type LiveTenant = CapsuleTenant & LiveObject;

export function tenantNamed(name: string, view: AdmissionView): LiveTenant | undefined {
  return view.get("tenants", name) as LiveTenant | undefined;
}

/** The index of a Tenant: the namespaces of ServiceAccounts that it gives rights to, each or all of a namespace. */
export function homesOf({ spec }: Manifest): string[] {
  const { owner, additionalRoleBindings = [] } = spec as CapsuleTenantSpec;
  const subjects = additionalRoleBindings.flatMap((binding) => binding.subjects);
  const homes = subjects.flatMap(({ kind, namespace }) => (kind === "ServiceAccount" && namespace ? [namespace] : []));
  return [...new Set([...accountNamespaces([owner, ...subjects].map(({ name }) => name)), ...homes])];
}

/** Of names of users and groups, the namespaces of those that are ServiceAccounts. */
export function accountNamespaces(names: readonly string[]): string[] {
  return names.flatMap((name) => /^system:serviceaccounts?:([^:]+)/.exec(name)?.[1] ?? []);
}

export function tenantNameOf(namespace: string, view: AdmissionView): string | undefined {
  return view.get("namespaces", namespace)?.metadata.labels?.[TENANT_LABEL];
}

export function tenantOf(namespace: string, view: AdmissionView): LiveTenant | undefined {
  const name = tenantNameOf(namespace, view);
  return name === undefined ? undefined : tenantNamed(name, view);
}
