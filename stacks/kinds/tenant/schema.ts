import Type from "typebox";
import { refuseBroadGroup, refuseProtectedNamespace } from "../../../providers/kubernetes/index";
import { type KindObject, TerminalError } from "../../contract/index";

/** What the API server refuses at once; more may be protected ({@link refuseProtectedNamespace}). */
const UNPROTECTED = {
  rule: "!(self.startsWith('kube-') || self in ['default', 'kindstack-system'])",
  message: "kube-*, default and kindstack-system cannot belong to a tenant",
};

const groups = (description: string) =>
  Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 253 }), {
      description,
      maxItems: 100,
      "x-kubernetes-list-type": "set",
    }),
  );

export const tenantSpec = Type.Object({
  adminEmail: Type.String({
    description: "Contact address of the tenant, as an annotation of each of its namespaces.",
    maxLength: 254,
    // Shown in tables: no control characters.
    pattern: "^[^@\\s\\x00-\\x1f\\x7f-\\x9f]+@[^@\\s\\x00-\\x1f\\x7f-\\x9f]+$",
  }),
  adminGroups: groups("Groups that get the ClusterRole admin in the tenant's namespaces."),
  userGroups: groups("Groups that get the ClusterRole edit in the tenant's namespaces."),
  namespaces: Type.Array(
    Type.String({
      maxLength: 63,
      pattern: "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
      "x-kubernetes-validations": [UNPROTECTED],
    }),
    {
      description: "The tenant's namespaces. One that exists is adopted: it is not deleted with the tenant.",
      maxItems: 200,
      "x-kubernetes-list-type": "set",
    },
  ),
});
export type TenantSpec = Type.Static<typeof tenantSpec>;

export const tenantStatus = Type.Object({
  namespaceCount: Type.Integer({ description: "Namespaces of the tenant that exist." }),
  adminEmail: Type.String(),
  adoptedNamespaces: Type.Array(Type.String(), {
    description: "Namespaces that existed before and are kept when the tenant is deleted.",
    "x-kubernetes-list-type": "set",
  }),
});
export type TenantStatus = Type.Static<typeof tenantStatus>;

/**
 * Refuses what only the operator knows to be protected, groups that everybody is in, and duplicates, which an older CRD may not refuse: they would be
 * resources of one name.
 */
export function validateTenant({ spec: { namespaces, ...groups } }: KindObject<TenantSpec>): void {
  for (const field of ["adminGroups", "userGroups"] as const) {
    for (const [index, name] of (groups[field] ?? []).entries()) refuseBroadGroup(name, `spec.${field}.${index}`);
  }
  for (const [index, name] of namespaces.entries()) {
    refuseProtectedNamespace(name, `spec.namespaces.${index}`);
    if (namespaces.indexOf(name) !== index) {
      throw new TerminalError("Invalid", `spec.namespaces.${index}: ${JSON.stringify(name)} is a duplicate value`);
    }
  }
}
