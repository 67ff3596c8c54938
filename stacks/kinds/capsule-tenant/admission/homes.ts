import type { LiveObject } from "../../../../providers/kubernetes/index";
import type { AdmissionView, AdmissionWatch } from "../../../contract/index";
import type { Subject } from "../former-subjects";
import { TENANT_LABEL } from "../labels";
import type { CapsuleTenantSpec } from "../schema";
import { tenantNameOf } from "./tenants";
import { cordonExempt, userGroups } from "./user-groups";

/*
 * The home of accounts is the namespace of ServiceAccounts that have rights elsewhere, whether or not it exists. Its owner can act as
 * any account of its own, and so would have these rights.
 */

/** Of names of users and groups, the namespaces of those that are ServiceAccounts. */
function accountNamespaces(names: readonly string[]): string[] {
  return names.flatMap((name) => /^system:serviceaccounts?:([^:]+)/.exec(name)?.[1] ?? []);
}

function homesOf(subjects: readonly Subject[]): string[] {
  const named = subjects.flatMap(({ kind, namespace }) => (kind === "ServiceAccount" && namespace ? [namespace] : []));
  return [...new Set([...accountNamespaces(subjects.map(({ name }) => name)), ...named])];
}

/** The index of a Tenant: where the accounts are that it gives rights to. */
export function homesInTenant({ spec }: LiveObject): string[] {
  const { owner, additionalRoleBindings = [] } = spec as CapsuleTenantSpec;
  return homesOf([owner, ...additionalRoleBindings.flatMap(({ subjects }) => subjects)]);
}

function homesInBinding(binding: LiveObject): string[] {
  return homesOf((binding as { subjects?: Subject[] }).subjects ?? []);
}

function homesInOtherTenant({ spec }: LiveObject): string[] {
  const { adminGroups = [], userGroups = [] } = spec as { adminGroups?: string[]; userGroups?: string[] };
  return accountNamespaces([...adminGroups, ...userGroups]);
}

/** There may be many bindings. */
function subjectsAlone(binding: LiveObject): LiveObject {
  const { apiVersion, kind, metadata, subjects } = binding as LiveObject & { subjects?: Subject[] };
  const { name, namespace, uid, resourceVersion } = metadata;
  return {
    ...{ apiVersion, kind, metadata: { name, ...(namespace && { namespace }), uid, resourceVersion } },
    ...(homesInBinding(binding).length > 0 && { subjects }),
  };
}

const BINDING = {
  apiVersion: "rbac.authorization.k8s.io/v1",
  indexers: { home: homesInBinding },
  transform: subjectsAlone,
};

/** What gives rights to accounts, besides Capsule's Tenants and what these make. */
export const HOME_WATCHES = {
  roleBindings: { ...BINDING, kind: "RoleBinding", labelSelector: `!${TENANT_LABEL}` },
  clusterRoleBindings: { ...BINDING, kind: "ClusterRoleBinding" },
  // Its RoleBindings come later.
  otherTenants: {
    apiVersion: "multitenancy.codereliant.io/v1",
    kind: "Tenant",
    isOtherKind: true,
    indexers: { home: homesInOtherTenant },
  },
} as const satisfies Record<string, AdmissionWatch>;

/** Whether a namespace is the home of accounts that have rights outside of this tenant. */
export function isHome(namespace: string, tenant: string, view: AdmissionView): boolean {
  return (
    accountNamespaces([...userGroups(), ...cordonExempt()]).includes(namespace) ||
    view.byIndex("tenants", "home", namespace).some(({ metadata }) => metadata.name !== tenant) ||
    view.byIndex("clusterRoleBindings", "home", namespace).length > 0 ||
    view.byIndex("otherTenants", "home", namespace).length > 0 ||
    // An owner may bind any account in the tenant's namespaces, and is to keep no name from other tenants by that.
    view
      .byIndex("roleBindings", "home", namespace)
      .some(({ metadata }) => tenantNameOf(metadata.namespace ?? "", view) === undefined)
  );
}
