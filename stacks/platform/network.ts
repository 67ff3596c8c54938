import type { Manifest } from "../../providers/kubernetes/client";
import type { Configuration } from "./configuration";
import { LABELS, NAME, SELECTOR } from "./labels";
import { ADMISSION_PORT, HTTP_PORT, METRICS_PORT, PREVIEW_PORT } from "./workload";

const DNS_PORT = 53;

/** How the operator is reached, for metrics and by the probes of its node, and what it may reach. */
export function network(configuration: Configuration): Manifest[] {
  const { namespace, networkPolicy, egressPorts, postgresPort, admission, admissionSources, previews } = configuration;
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
    const sources = admissionSources.map((cidr) => ({ ipBlock: { cidr } }));
    const ingress = [
      tcp([HTTP_PORT, METRICS_PORT, ...(previews ? [PREVIEW_PORT] : [])]),
      ...(admission ? [{ ...tcp([ADMISSION_PORT]), ...(sources.length > 0 && { from: sources }) }] : []),
    ];
    const dns = { ports: ["UDP", "TCP"].map((protocol) => ({ protocol, port: DNS_PORT })) };
    manifests.push(policy(NAME, namespace, SELECTOR, { ingress, egress: [dns, tcp(tcpPorts)] }));
  }
  return manifests;
}

/** What Pods may be reached by, and reach; nothing else. */
export function policy(name: string, namespace: string, matchLabels: object, allowed: object): Manifest {
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "NetworkPolicy",
    metadata: { name, namespace, labels: LABELS },
    spec: { podSelector: { matchLabels }, policyTypes: ["Ingress", "Egress"], ...allowed },
  };
}

export function tcp(ports: readonly number[]) {
  return { ports: ports.map((port) => ({ protocol: "TCP", port })) };
}
