import type { Manifest } from "../../providers/kubernetes/client";
import { CERTIFICATE_SECRET } from "../contract/admission";
import type { AnyKind } from "../contract/kind";
import { operatorRules } from "../contract/rbac";
import type { Configuration } from "./configuration";
import { LABELS, NAME } from "./labels";

const RBAC = "rbac.authorization.k8s.io";

/** Leases are made, held, and removed when who held them is gone. */
const LEASE_RULE = {
  apiGroups: ["coordination.k8s.io"],
  resources: ["leases"],
  verbs: ["get", "list", "create", "patch", "delete"],
};
/** The certificate's Secret is the only one that the operator may read; a creation cannot be limited to a name. */
const CERTIFICATE_RULES = [
  { apiGroups: [""], resources: ["secrets"], verbs: ["create"] },
  { apiGroups: [""], resources: ["secrets"], resourceNames: [CERTIFICATE_SECRET], verbs: ["get", "patch"] },
];

/** Who the operator is, and what it may do: exactly what the kinds call for, and to share the work with its like. */
export function access(configuration: Configuration, kinds: readonly AnyKind[]): Manifest[] {
  const { namespace, serviceAccountAnnotations, admission } = configuration;
  const annotated = Object.keys(serviceAccountAnnotations).length > 0;
  return [
    {
      apiVersion: "v1",
      kind: "ServiceAccount",
      metadata: {
        name: NAME,
        namespace,
        labels: LABELS,
        ...(annotated && { annotations: serviceAccountAnnotations }),
      },
      automountServiceAccountToken: false, // the operator's Pod asks for it
    },
    {
      apiVersion: `${RBAC}/v1`,
      kind: "ClusterRole",
      metadata: { name: NAME, labels: LABELS },
      rules: operatorRules(admission ? kinds : kinds.map(({ admission: _, ...kind }) => kind)),
    },
    {
      apiVersion: `${RBAC}/v1`,
      kind: "ClusterRoleBinding",
      metadata: { name: NAME, labels: LABELS },
      roleRef: { apiGroup: RBAC, kind: "ClusterRole", name: NAME },
      subjects: [{ kind: "ServiceAccount", name: NAME, namespace }],
    },
    // Not bound here: for Prometheus' service account, and for people who look at the console.
    reader("metrics", ["/metrics"]),
    reader("console", ["/console"]),
    {
      apiVersion: `${RBAC}/v1`,
      kind: "Role",
      metadata: { name: NAME, namespace, labels: LABELS },
      rules: [LEASE_RULE, ...(admission ? CERTIFICATE_RULES : [])],
    },
    {
      apiVersion: `${RBAC}/v1`,
      kind: "RoleBinding",
      metadata: { name: NAME, namespace, labels: LABELS },
      roleRef: { apiGroup: RBAC, kind: "Role", name: NAME },
      subjects: [{ kind: "ServiceAccount", name: NAME, namespace }],
    },
  ];
}

function reader(of: string, nonResourceURLs: string[]): Manifest {
  return {
    apiVersion: `${RBAC}/v1`,
    kind: "ClusterRole",
    metadata: { name: `${NAME}-${of}-reader`, labels: LABELS },
    rules: [{ nonResourceURLs, verbs: ["get"] }],
  };
}
