import type { Manifest } from "../../providers/kubernetes/client";
import { CERTIFICATE_SECRET } from "../contract/admission";
import { INSPECTION_SECRET, inspectionRules } from "../contract/inspection";
import type { AnyKind } from "../contract/kind";
import type { PolicyRule } from "../contract/policy-rule";
import { admissionRules, operatorRules } from "../contract/rbac";
import type { Configuration } from "./configuration";
import { LABELS, NAME } from "./labels";

const RBAC = "rbac.authorization.k8s.io";

interface Subject {
  kind: string;
  name: string;
  namespace: string;
}

/** Leases are made, held, and removed when who held them is gone. */
const LEASE_RULE = {
  apiGroups: ["coordination.k8s.io"],
  resources: ["leases"],
  verbs: ["get", "list", "create", "patch", "delete"],
};
/** The Secrets of its certificates are the only ones that it may read; a creation cannot be limited to a name. */
function certificateRules({ admission, previews, previewSecret }: Configuration): PolicyRule[] {
  const names = [
    ...(admission ? [CERTIFICATE_SECRET] : []),
    ...(previews && previewSecret === undefined ? [INSPECTION_SECRET] : []),
  ];
  if (names.length === 0) return [];
  return [
    { apiGroups: [""], resources: ["secrets"], verbs: ["create"] },
    { apiGroups: [""], resources: ["secrets"], resourceNames: names, verbs: ["get", "patch"] },
  ];
}

/** The ClusterRole of admission; it is the owner of the cluster-wide objects that the operator makes. */
export const ADMISSION_ROLE = `${NAME}-admission`;

/** Who the operator is, and what it may do: exactly what the kinds call for, and to share the work with its like. */
export function access(configuration: Configuration, kinds: readonly AnyKind[]): Manifest[] {
  const { namespace, serviceAccountAnnotations, admission, previews } = configuration;
  const subjects = [{ kind: "ServiceAccount", name: NAME, namespace }];
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
    ...clusterWide(NAME, [...operatorRules(kinds), ...(previews ? inspectionRules(kinds) : [])], subjects),
    // Admission's own role: what the operator makes for admission is garbage-collected with it.
    ...(admission ? clusterWide(ADMISSION_ROLE, admissionRules(kinds, ADMISSION_ROLE), subjects) : []),
    // Not bound here: for Prometheus' service account, and for people who look at the console.
    reader("metrics", ["/metrics"]),
    reader("console", ["/console"]),
    {
      apiVersion: `${RBAC}/v1`,
      kind: "Role",
      metadata: { name: NAME, namespace, labels: LABELS },
      rules: [LEASE_RULE, ...certificateRules(configuration)],
    },
    roleBinding(NAME, namespace, NAME, subjects),
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

/** Rules in all namespaces. */
export function clusterWide(name: string, rules: readonly PolicyRule[], subjects: readonly Subject[]): Manifest[] {
  return [
    { apiVersion: `${RBAC}/v1`, kind: "ClusterRole", metadata: { name, labels: LABELS }, rules },
    {
      apiVersion: `${RBAC}/v1`,
      kind: "ClusterRoleBinding",
      metadata: { name, labels: LABELS },
      roleRef: { apiGroup: RBAC, kind: "ClusterRole", name },
      subjects,
    },
  ];
}

export function roleBinding(name: string, namespace: string, role: string, subjects: readonly Subject[]): Manifest {
  return {
    apiVersion: `${RBAC}/v1`,
    kind: "RoleBinding",
    metadata: { name, namespace, labels: LABELS },
    roleRef: { apiGroup: RBAC, kind: "Role", name: role },
    subjects,
  };
}
