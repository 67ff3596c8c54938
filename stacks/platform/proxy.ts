import type { Manifest } from "../../providers/kubernetes/client";
import type { PolicyRule } from "../contract/capabilities";
import { REVIEWS } from "../contract/rbac";
import { bind, grant, serviceAccount } from "./access";
import type { Configuration } from "./configuration";
import { deployment, options, WITHDRAWAL_SECONDS } from "./deployment";
import { LABELS, NAME } from "./labels";
import { networkPolicies, service, tcp } from "./network";

const PROXY_NAME = `${NAME}-proxy`;
/** The Secret of its certificate, which it makes itself. */
const PROXY_SECRET = `${PROXY_NAME}-tls`;
/** Where another one is mounted. */
const CERTIFICATE = "/etc/kindstack-proxy";
const PORT = 9443;
const HTTP_PORT = 8081;
const METRICS_PORT = 8443;
const SELECTOR = { "app.kubernetes.io/name": NAME, "app.kubernetes.io/component": "proxy" } as const;
/** Running requests may continue for 20 s; then the rest is cut. */
const TERMINATION_SECONDS = 30 + WITHDRAWAL_SECONDS;

/** The proxy through which owners of tenants see their own namespaces; nothing, unless it is asked for. */
export async function proxy(configuration: Configuration): Promise<Manifest[]> {
  if (!configuration.proxy) return [];
  const { namespace, egressPorts, proxyNames, proxySecret, logLevel } = configuration;
  const { proxyUserGroups, proxyRefusedGroups, proxyMaxConnections } = configuration;
  const host = `${PROXY_NAME}.${namespace}.svc`;
  return [
    ...proxyAccess(namespace, proxySecret),
    service(configuration, PROXY_NAME, SELECTOR, [{ name: "https", port: 443 }]),
    ...(await deployment(configuration, {
      name: PROXY_NAME,
      selector: SELECTOR,
      replicas: 2,
      pod: { terminationGracePeriodSeconds: TERMINATION_SECONDS },
      container: {
        name: "proxy",
        args: [
          "proxy",
          ...options({
            port: PORT,
            "http-port": HTTP_PORT,
            "metrics-port": METRICS_PORT,
            ...(proxySecret === undefined
              ? {
                  "tls-secret": `${namespace}/${PROXY_SECRET}`,
                  "tls-names": [host, `${host}.cluster.local`, ...proxyNames],
                }
              : { "tls-cert-file": `${CERTIFICATE}/tls.crt`, "tls-key-file": `${CERTIFICATE}/tls.key` }),
            "user-group": proxyUserGroups,
            "refuse-group": proxyRefusedGroups,
            "max-connections": proxyMaxConnections,
          }),
        ],
        env: { KINDSTACK_LOG_LEVEL: logLevel, KINDSTACK_LOG_FORMAT: "json" },
        ports: { https: PORT, http: HTTP_PORT, metrics: METRICS_PORT },
        ...(proxySecret !== undefined && {
          volumeMounts: [
            {
              volume: { name: "certificate", secret: { secretName: proxySecret, defaultMode: 0o440 } },
              destPath: CERTIFICATE,
            },
          ],
        }),
        resources: { requests: { cpu: "50m", memory: "128Mi" }, limits: { memory: "512Mi" } },
      },
    })),
    // Only the API server is reached; its address is a variable of every Pod.
    ...networkPolicies(configuration, PROXY_NAME, SELECTOR, {
      ingress: [tcp([PORT, HTTP_PORT, METRICS_PORT])],
      egress: [tcp(egressPorts)],
    }),
  ];
}

/**
 * All that the proxy may do. Impersonating any user amounts to the rights of a cluster administrator: RBAC cannot
 * exclude groups. The proxy has few rights of its own.
 */
const PROXY_RULES: readonly PolicyRule[] = [
  { apiGroups: [""], resources: ["users", "groups", "serviceaccounts"], verbs: ["impersonate"] },
  // Users' UIDs, and what authenticators say of them besides, under names that only they know.
  { apiGroups: ["authentication.k8s.io"], resources: ["*"], verbs: ["impersonate"] },
  ...REVIEWS,
  { apiGroups: [""], resources: ["namespaces"], verbs: ["list", "watch"] },
  { apiGroups: ["capsule.clastix.io"], resources: ["tenants"], verbs: ["list", "watch"] },
];

const OWN_SECRET: readonly PolicyRule[] = [
  { apiGroups: [""], resources: ["secrets"], resourceNames: [PROXY_SECRET], verbs: ["get", "patch"] },
  // RBAC cannot limit a creation to a name.
  { apiGroups: [""], resources: ["secrets"], verbs: ["create"] },
];

/** @param secret of the certificate, where the proxy does not make it */
export function proxyAccess(namespace: string, secret?: string): Manifest[] {
  const account = { name: PROXY_NAME, namespace };
  const published = { kind: "Role", name: "extension-apiserver-authentication-reader" };
  return [
    serviceAccount(account),
    ...grant("ClusterRole", account, PROXY_RULES),
    ...(secret === undefined ? grant("Role", account, OWN_SECRET) : []),
    // The CA of users' certificates, where the API server publishes it.
    bind(published, { name: PROXY_NAME, namespace: "kube-system", labels: LABELS }, account),
  ];
}
