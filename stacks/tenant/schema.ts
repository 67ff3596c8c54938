import Type from "typebox";

/** Namespaces that no tenant may claim: those of the cluster itself and of the operator. */
const PROTECTED = "self.startsWith('kube-') || self in ['default', 'kindstack-system']";

export const tenantSpec = Type.Object({
  adminEmail: Type.String({
    description: "Whom to write to about this tenant; an annotation of each of its namespaces.",
    maxLength: 254,
    pattern: "^[^@\\s]+@[^@\\s]+$",
  }),
  adminGroups: Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 253 }), {
      description: "Groups that get the ClusterRole admin in the tenant's namespaces.",
      maxItems: 100,
      "x-kubernetes-list-type": "set",
    }),
  ),
  userGroups: Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 253 }), {
      description: "Groups that get the ClusterRole edit in the tenant's namespaces.",
      maxItems: 100,
      "x-kubernetes-list-type": "set",
    }),
  ),
  namespaces: Type.Array(
    Type.String({
      maxLength: 63,
      pattern: "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
      "x-kubernetes-validations": [
        { rule: `!(${PROTECTED})`, message: "kube-*, default and kindstack-system cannot belong to a tenant" },
      ],
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
    description: "Namespaces that existed before, and will outlive the tenant.",
    "x-kubernetes-list-type": "set",
  }),
});
export type TenantStatus = Type.Static<typeof tenantStatus>;
