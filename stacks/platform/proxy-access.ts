import type { Manifest } from "../../providers/kubernetes/client";
import type { PolicyRule } from "../contract/policy-rule";
import { clusterWide, roleBinding } from "./access";
import { LABELS, NAME } from "./labels";

/** What the proxy and all that belongs to it is called. */
export const PROXY_NAME = `${NAME}-proxy`;
/** The Secret of its certificate, which it makes itself. */
export const PROXY_SECRET = `${PROXY_NAME}-tls`;

/**
 * All that the proxy may do. To act as any user is as much as to be the cluster's administrator: RBAC has no way to
 * leave out some groups. What it may do under its own name is little.
 */
const PROXY_RULES: readonly PolicyRule[] = [
  { apiGroups: [""], resources: ["users", "groups", "serviceaccounts"], verbs: ["impersonate"] },
  // Users' UIDs, and what authenticators say of them besides, under names that only they know.
  { apiGroups: ["authentication.k8s.io"], resources: ["*"], verbs: ["impersonate"] },
  { apiGroups: ["authentication.k8s.io"], resources: ["tokenreviews"], verbs: ["create"] },
  { apiGroups: ["authorization.k8s.io"], resources: ["subjectaccessreviews"], verbs: ["create"] },
  { apiGroups: [""], resources: ["namespaces"], verbs: ["list", "watch"] },
  { apiGroups: ["capsule.clastix.io"], resources: ["tenants"], verbs: ["list", "watch"] },
];

/** Who the proxy is, and what it may do. */
export function proxyAccess(namespace: string): Manifest[] {
  const subjects = [{ kind: "ServiceAccount", name: PROXY_NAME, namespace }];
  return [
    {
      apiVersion: "v1",
      kind: "ServiceAccount",
      metadata: { name: PROXY_NAME, namespace, labels: LABELS },
      automountServiceAccountToken: false, // the proxy's Pods ask for it
    },
    ...clusterWide(PROXY_NAME, PROXY_RULES, subjects),
    {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "Role",
      metadata: { name: PROXY_NAME, namespace, labels: LABELS },
      rules: [
        { apiGroups: [""], resources: ["secrets"], resourceNames: [PROXY_SECRET], verbs: ["get", "patch"] },
        // What does not exist yet has no name that a rule could go by.
        { apiGroups: [""], resources: ["secrets"], verbs: ["create"] },
      ],
    },
    roleBinding(PROXY_NAME, namespace, PROXY_NAME, subjects),
    // The CA of users' certificates, where the API server publishes it.
    roleBinding(PROXY_NAME, "kube-system", "extension-apiserver-authentication-reader", subjects),
  ];
}
