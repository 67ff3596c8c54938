import type { Manifest } from "../../providers/kubernetes/client";
import type { Configuration } from "./configuration";
import { LABELS, NAME, SELECTOR } from "./labels";
import { ADMISSION_PORT, HTTP_PORT, METRICS_PORT, PREVIEW_PORT } from "./workload";

const DNS_PORT = 53;

/** How the operator is reached, for metrics and by the probes of its node, and what it may reach. */
export function network(configuration: Configuration): Manifest[] {
  const { namespace, serviceMonitor, networkPolicy, egressPorts, postgresPort, admission, admissionSources, previews } =
    configuration;
  const manifests: Manifest[] = [
    {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: NAME, namespace, labels: { ...LABELS, ...SELECTOR } },
      spec: {
        selector: SELECTOR,
        ports: [
          { name: "metrics", port: METRICS_PORT, targetPort: "metrics" },
          ...(admission ? [{ name: "admission", port: 443, targetPort: "admission" }] : []),
          ...(previews ? [{ name: "previews", port: PREVIEW_PORT, targetPort: "previews" }] : []),
        ],
      },
    },
  ];
  if (networkPolicy) {
    const tcpPorts = [...new Set([...egressPorts, postgresPort])];
    manifests.push({
      apiVersion: "networking.k8s.io/v1",
      kind: "NetworkPolicy",
      metadata: { name: NAME, namespace, labels: LABELS },
      spec: {
        podSelector: { matchLabels: SELECTOR },
        policyTypes: ["Ingress", "Egress"],
        ingress: [
          {
            ports: [HTTP_PORT, METRICS_PORT, ...(previews ? [PREVIEW_PORT] : [])].map((port) => ({
              protocol: "TCP",
              port,
            })),
          },
          ...(admission
            ? [
                {
                  ports: [{ protocol: "TCP", port: ADMISSION_PORT }],
                  ...(admissionSources.length > 0 && {
                    from: admissionSources.map((cidr) => ({ ipBlock: { cidr } })),
                  }),
                },
              ]
            : []),
        ],
        egress: [
          { ports: ["UDP", "TCP"].map((protocol) => ({ protocol, port: DNS_PORT })) },
          { ports: tcpPorts.map((port) => ({ protocol: "TCP", port })) },
        ],
      },
    });
  }
  if (serviceMonitor) {
    manifests.push({
      apiVersion: "monitoring.coreos.com/v1",
      kind: "ServiceMonitor",
      metadata: { name: NAME, namespace, labels: LABELS },
      spec: { selector: { matchLabels: SELECTOR }, endpoints: [scraping(configuration)] },
    });
  }
  return manifests;
}

/** Prometheus shows the token of its service account, which must have the ClusterRole `kindstack-metrics-reader`. */
function scraping({ namespace, metricsSecret }: Configuration): object {
  return {
    port: "metrics",
    path: "/metrics",
    scheme: "https",
    bearerTokenFile: "/var/run/secrets/kubernetes.io/serviceaccount/token",
    tlsConfig:
      metricsSecret === undefined
        ? { insecureSkipVerify: true } // made at each start; clients cannot verify it
        : { serverName: `${NAME}.${namespace}.svc`, ca: { secret: { name: metricsSecret, key: "ca.crt" } } },
  };
}
