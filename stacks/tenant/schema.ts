import Type from "typebox";
import { refuseProtectedNamespace } from "../../providers/kubernetes/index";
import { type KindObject, TerminalError } from "../contract/index";

/** What the API server refuses at once; more may be protected ({@link refuseProtectedNamespace}). */
const PROTECTED = ["default", "kindstack-system"];
const PROTECTED_RULE = `self.startsWith('kube-') || self in [${PROTECTED.map((name) => `'${name}'`).join(", ")}]`;
const PROTECTED_MESSAGE = "kube-*, default and kindstack-system cannot belong to a tenant";

export const tenantSpec = Type.Object({
  adminEmail: Type.String({
    description: "Contact address of the tenant, as an annotation of each of its namespaces.",
    maxLength: 254,
    // Shown in tables: no control characters.
    pattern: "^[^@\\s\\x00-\\x1f\\x7f-\\x9f]+@[^@\\s\\x00-\\x1f\\x7f-\\x9f]+$",
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
      "x-kubernetes-validations": [{ rule: `!(${PROTECTED_RULE})`, message: PROTECTED_MESSAGE }],
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
 * What the API server refuses by rules that a schema cannot say, for objects that come from a file; and what only the
 * operator knows to be protected.
 *
 * @throws TerminalError naming the namespace
 */
export function validateTenant({ spec: { namespaces } }: KindObject<TenantSpec>): void {
  for (const [index, name] of namespaces.entries()) {
    refuseProtectedNamespace(name, `spec.namespaces.${index}`);
    if (namespaces.indexOf(name) !== index) {
      throw new TerminalError("Invalid", `spec.namespaces.${index}: ${JSON.stringify(name)} is there twice`);
    }
  }
}
