import type { Manifest } from "../../providers/kubernetes/client";
import type { Configuration } from "./configuration";
import { LABELS, NAME } from "./labels";
import { policy, tcp } from "./network";
import { PROXY_NAME, PROXY_SECRET, proxyAccess } from "./proxy-access";
import { CONTAINER_SECURITY, disruptionBudget, POD_SECURITY, PROBES } from "./workload";

const PORT = 9443;
const HTTP_PORT = 8081;
const METRICS_PORT = 8443;
const SELECTOR = { "app.kubernetes.io/name": NAME, "app.kubernetes.io/component": "proxy" } as const;
/** Running requests may continue for 20 s; then the rest is cut. */
const TERMINATION_SECONDS = 30;

/** The proxy through which owners of tenants see their own namespaces; nothing, unless it is asked for. */
export function proxy(configuration: Configuration): Manifest[] {
  const { namespace, networkPolicy, egressPorts } = configuration;
  if (!configuration.proxy) return [];
  const manifests: Manifest[] = [
    ...proxyAccess(namespace),
    {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: PROXY_NAME, namespace, labels: { ...LABELS, ...SELECTOR } },
      spec: { selector: SELECTOR, ports: [{ name: "https", port: 443, targetPort: "https" }] },
    },
    {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name: PROXY_NAME, namespace, labels: LABELS },
      spec: {
        replicas: 2,
        revisionHistoryLimit: 3,
        selector: { matchLabels: SELECTOR },
        template: { metadata: { labels: { ...LABELS, ...SELECTOR } }, spec: podSpec(configuration) },
      },
    },
    disruptionBudget(PROXY_NAME, namespace, SELECTOR),
  ];
  if (networkPolicy) {
    // The API server is reached, and nothing else; its address is a variable of every Pod.
    const allowed = { ingress: [tcp([PORT, HTTP_PORT, METRICS_PORT])], egress: [tcp(egressPorts)] };
    manifests.push(policy(PROXY_NAME, namespace, SELECTOR, allowed));
  }
  return manifests;
}

function podSpec(configuration: Configuration): object {
  const { namespace, image, imagePullPolicy, imagePullSecrets, proxyNames, proxyUserGroups, logLevel } = configuration;
  const service = `${PROXY_NAME}.${namespace}.svc`;
  return {
    serviceAccountName: PROXY_NAME,
    automountServiceAccountToken: true,
    terminationGracePeriodSeconds: TERMINATION_SECONDS,
    ...(imagePullSecrets.length > 0 && { imagePullSecrets: imagePullSecrets.map((name) => ({ name })) }),
    securityContext: POD_SECURITY,
    containers: [
      {
        name: "proxy",
        image,
        imagePullPolicy,
        args: [
          "proxy",
          ...["--port", String(PORT), "--http-port", String(HTTP_PORT), "--metrics-port", String(METRICS_PORT)],
          ...["--tls-secret", `${namespace}/${PROXY_SECRET}`],
          ...["--tls-names", service, `${service}.cluster.local`, ...proxyNames],
          ...["--user-group", ...proxyUserGroups],
        ],
        env: [
          { name: "KINDSTACK_LOG_LEVEL", value: logLevel },
          { name: "KINDSTACK_LOG_FORMAT", value: "json" },
        ],
        ports: [
          { name: "https", containerPort: PORT },
          { name: "http", containerPort: HTTP_PORT },
          { name: "metrics", containerPort: METRICS_PORT },
        ],
        ...PROBES,
        resources: { requests: { cpu: "50m", memory: "128Mi" }, limits: { memory: "512Mi" } },
        securityContext: CONTAINER_SECURITY,
      },
    ],
  };
}
