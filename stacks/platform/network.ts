import type { Manifest } from "../../providers/kubernetes/client";
import type { Configuration } from "./configuration";
import { LABELS, NAME, SELECTOR } from "./labels";
import { ADMISSION_PORT, HTTP_PORT } from "./workload";

const DNS_PORT = 53;

/** How the operator is reached, by probes and for metrics, and what it may reach. */
export function network(configuration: Configuration): Manifest[] {
  const { namespace, serviceMonitor, networkPolicy, egressPorts, postgresPort, admission, admissionSources } =
    configuration;
  const manifests: Manifest[] = [
    {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: NAME, namespace, labels: { ...LABELS, ...SELECTOR } },
      spec: {
        selector: SELECTOR,
        ports: [
          { name: "http", port: HTTP_PORT, targetPort: "http" },
          ...(admission ? [{ name: "admission", port: 443, targetPort: "admission" }] : []),
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
          { ports: [{ protocol: "TCP", port: HTTP_PORT }] },
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
      spec: { selector: { matchLabels: SELECTOR }, endpoints: [{ port: "http", path: "/metrics" }] },
    });
  }
  return manifests;
}
