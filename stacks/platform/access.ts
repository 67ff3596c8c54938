import type { Manifest } from "../../providers/kubernetes/client";
import { CERTIFICATE_SECRET } from "../contract/admission";
import type { PolicyRule } from "../contract/capabilities";
import { installationPolicy } from "../contract/installation";
import type { AnyKind } from "../contract/kind";
import { admissionRules, INSPECTION_SECRET, operatorRules } from "../contract/rbac";
import { DELETE_YOUNGER } from "../kinds/capsule-tenant/labels";
import type { Configuration } from "./configuration";
import { LABELS, NAME, nameOutside } from "./labels";

const RBAC = "rbac.authorization.k8s.io";

const ADMISSION_ROLE = `${NAME}-admission`;

/** The ClusterRole of admission; it is the owner of the cluster-wide objects that the operator makes. */
export const admissionRole = (namespace: string) => nameOutside(namespace, ADMISSION_ROLE);

/** The operator's service account and rights: exactly what the kinds need, and Leases to share the work. */
export function access(configuration: Configuration, kinds: readonly AnyKind[]): Manifest[] {
  const { namespace, serviceAccountAnnotations, admission, deleteYounger } = configuration;
  const account = { name: NAME, namespace };
  const operator = operatorRules(kinds, admission && deleteYounger ? [DELETE_YOUNGER] : []);
  return [
    serviceAccount(account, serviceAccountAnnotations),
    ...installationPolicy(account),
    ...grant("ClusterRole", account, operator),
    // Admission's own role: what the operator makes for admission is garbage-collected with it.
    ...(admission
      ? grant("ClusterRole", account, admissionRules(kinds, admissionRole(namespace)), ADMISSION_ROLE)
      : []),
    // Not bound here: for Prometheus' service account, and for people who look at the console.
    reader("metrics"),
    reader("console"),
    ...userRoles(configuration, kinds),
    ...grant("Role", account, [LEASE_RULE, ...certificateRules(configuration)]),
  ];
}

/** Leases are created, held, and removed when their holder is gone. */
const LEASE_RULE: PolicyRule = {
  apiGroups: ["coordination.k8s.io"],
  resources: ["leases"],
  verbs: ["get", "list", "create", "patch", "delete"],
};

/** Only the Secrets of the operator's certificates may be read; RBAC cannot limit a creation to a name. */
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

function reader(path: string): Manifest {
  return {
    apiVersion: `${RBAC}/v1`,
    kind: "ClusterRole",
    metadata: { name: `${NAME}-${path}-reader`, labels: LABELS },
    rules: [{ nonResourceURLs: [`/${path}`], verbs: ["get"] }],
  };
}

/** What those may do who view or edit a namespace with the objects of a kind in it: nothing where these reach outside of it. */
export function userRules({ scope, owns, group, plural }: AnyKind): Record<"view" | "edit", PolicyRule[]> {
  const rule = { apiGroups: [group], resources: [plural] };
  if (scope !== "Namespaced" || owns.length === 0) return { view: [], edit: [] };
  return {
    view: [{ ...rule, verbs: ["get", "list", "watch"] }],
    edit: [{ ...rule, verbs: ["create", "update", "patch", "delete", "deletecollection"] }],
  };
}

/** Roles for users, to be bound, or parts of Kubernetes' own roles of these names. */
function userRoles({ aggregateRoles }: Configuration, kinds: readonly AnyKind[]): Manifest[] {
  return (["view", "edit"] as const).flatMap((name) => {
    const rules = kinds.flatMap((kind) => userRules(kind)[name]);
    if (rules.length === 0) return [];
    const aggregate = aggregateRoles && { [`${RBAC}/aggregate-to-${name}`]: "true" };
    const metadata = { name: `${NAME}-${name}`, labels: { ...LABELS, ...aggregate } };
    return [{ apiVersion: `${RBAC}/v1`, kind: "ClusterRole", metadata, rules }];
  });
}

interface Account {
  name: string;
  namespace: string;
}

/** The account of a program, whose Pods ask for its token. */
export function serviceAccount(account: Account, annotations: Record<string, string> = {}): Manifest {
  const isAnnotated = Object.keys(annotations).length > 0;
  return {
    apiVersion: "v1",
    kind: "ServiceAccount",
    metadata: { ...account, labels: LABELS, ...(isAnnotated && { annotations }) },
    automountServiceAccountToken: false,
  };
}

/** A role with these rules, in all namespaces or in the account's own, and its binding. */
export function grant(
  kind: "ClusterRole" | "Role",
  account: Account,
  rules: readonly PolicyRule[],
  name = account.name,
): Manifest[] {
  const metadata = { name, ...(kind === "Role" && { namespace: account.namespace }), labels: LABELS };
  return [{ apiVersion: `${RBAC}/v1`, kind, metadata, rules }, bind({ kind, name }, metadata, account)];
}

export function bind(role: { kind: string; name: string }, metadata: Manifest["metadata"], account: Account): Manifest {
  return {
    apiVersion: `${RBAC}/v1`,
    kind: `${role.kind}Binding`,
    metadata,
    roleRef: { apiGroup: RBAC, ...role },
    subjects: [{ kind: "ServiceAccount", ...account }],
  };
}
