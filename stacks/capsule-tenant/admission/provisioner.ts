import type { Manifest } from "../../../providers/kubernetes/client";
import { userGroups } from "./user-groups";

const RBAC = "rbac.authorization.k8s.io";
const NAME = "capsule-namespace-provisioner";

/** The right to make namespaces, for the members of the configured groups. The webhook sees to whose they are. */
export function namespaceProvisioner(): Manifest[] {
  return [
    {
      apiVersion: `${RBAC}/v1`,
      kind: "ClusterRole",
      metadata: { name: NAME },
      rules: [{ apiGroups: [""], resources: ["namespaces"], verbs: ["create"] }],
    },
    {
      apiVersion: `${RBAC}/v1`,
      kind: "ClusterRoleBinding",
      metadata: { name: NAME },
      roleRef: { apiGroup: RBAC, kind: "ClusterRole", name: NAME },
      subjects: userGroups().map((name) => ({ apiGroup: RBAC, kind: "Group", name })),
    },
  ];
}
