import type { Manifest } from "../providers/kubernetes/client";

const RBAC = "rbac.authorization.k8s.io";

/** What has a name: in a namespace or, where none is named, in the whole cluster. */
interface Place {
  name: string;
  namespace?: string;
}

interface Subject {
  apiGroup?: string;
  kind: string;
  name: string;
  namespace?: string;
}

export const userNamed = (name: string): Subject => ({ apiGroup: RBAC, kind: "User", name });

/** A role with these rules, and what binds it to these subjects where the role holds. */
export function roleFor(subjects: readonly Subject[], rules: readonly object[], metadata: Place): [Manifest, Manifest] {
  const kind = metadata.namespace === undefined ? "ClusterRole" : "Role";
  return [
    { apiVersion: `${RBAC}/v1`, kind, metadata, rules },
    binding(subjects, { kind, name: metadata.name }, metadata),
  ];
}

/** What binds a ClusterRole to these subjects. */
export function bindingFor(subjects: readonly Subject[], clusterRole: string, metadata: Place): Manifest {
  return binding(subjects, { kind: "ClusterRole", name: clusterRole }, metadata);
}

function binding(subjects: readonly Subject[], role: { kind: string; name: string }, metadata: Place): Manifest {
  const kind = metadata.namespace === undefined ? "ClusterRoleBinding" : "RoleBinding";
  return { apiVersion: `${RBAC}/v1`, kind, metadata, roleRef: { apiGroup: RBAC, ...role }, subjects };
}
