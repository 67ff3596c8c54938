import type { Manifest } from "../../../../providers/kubernetes/index";
import { NAMESPACE_DELETER } from "../labels";
import { userGroups } from "./user-groups";

const RBAC = "rbac.authorization.k8s.io";
const NAME = "capsule-namespace-provisioner";
const VERSION = `${RBAC}/v1`;

/**
 * The right to create namespaces, for the members of the configured groups: the webhook assigns each to a tenant. Tools
 * that apply get and patch what is not there yet, for which RBAC knows no place; a policy lets them change only their own.
 * And the role that lets an owner delete a namespace; the tenants' stacks bind it.
 */
export function namespaceRoles(): Manifest[] {
  return [
    {
      apiVersion: VERSION,
      kind: "ClusterRole",
      metadata: { name: NAME },
      rules: [{ apiGroups: [""], resources: ["namespaces"], verbs: ["create", "get", "patch"] }],
    },
    {
      apiVersion: VERSION,
      kind: "ClusterRoleBinding",
      metadata: { name: NAME },
      roleRef: { apiGroup: RBAC, kind: "ClusterRole", name: NAME },
      subjects: userGroups().map((name) => ({ apiGroup: RBAC, kind: "Group", name })),
    },
    {
      apiVersion: VERSION,
      kind: "ClusterRole",
      metadata: { name: NAMESPACE_DELETER },
      rules: [{ apiGroups: [""], resources: ["namespaces"], verbs: ["delete"] }],
    },
  ];
}
