import type { Manifest } from "../../providers/kubernetes/client";
import type { Configuration } from "./configuration";
import { LABELS, NAME, SELECTOR } from "./labels";
import { ADMISSION_PORT, HTTP_PORT, METRICS_PORT, PREVIEW_PORT } from "./workload";

/** How the operator is reached, for metrics and by the probes of its node, and what it may reach. */
export function network(configuration: Configuration): Manifest[] {
  const { egressPorts, dnsPorts, postgresPort, admission, admissionSources, previews } = configuration;
  const sources = admissionSources.map((cidr) => ({ ipBlock: { cidr } }));
  const ingress = [
    tcp([HTTP_PORT, METRICS_PORT, ...(previews ? [PREVIEW_PORT] : [])]),
    ...(admission ? [{ ...tcp([ADMISSION_PORT]), ...(sources.length > 0 && { from: sources }) }] : []),
  ];
  const dns = { ports: dnsPorts.flatMap((port) => ["UDP", "TCP"].map((protocol) => ({ protocol, port }))) };
  return [
    service(configuration, NAME, SELECTOR, [
      { name: "metrics", port: METRICS_PORT },
      ...(admission ? [{ name: "admission", port: 443 }] : []),
      ...(previews ? [{ name: "previews", port: PREVIEW_PORT }] : []),
    ]),
    ...networkPolicies(configuration, NAME, SELECTOR, {
      ingress,
      egress: [dns, tcp([...new Set([...egressPorts, postgresPort])])],
    }),
  ];
}

/** A Service whose ports lead to those of the same names. */
export function service(
  { namespace }: Configuration,
  name: string,
  selector: Readonly<Record<string, string>>,
  ports: readonly { name: string; port: number }[],
): Manifest {
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name, namespace, labels: { ...LABELS, ...selector } },
    spec: { selector, ports: ports.map((port) => ({ ...port, targetPort: port.name })) },
  };
}

/** A NetworkPolicy that allows these connections of Pods, and no others. None if the configuration disables it. */
export function networkPolicies(
  { namespace, networkPolicy }: Configuration,
  name: string,
  matchLabels: Readonly<Record<string, string>>,
  allowed: { ingress: object[]; egress: object[] },
): Manifest[] {
  if (!networkPolicy) return [];
  return [
    {
      apiVersion: "networking.k8s.io/v1",
      kind: "NetworkPolicy",
      metadata: { name, namespace, labels: LABELS },
      spec: { podSelector: { matchLabels }, policyTypes: ["Ingress", "Egress"], ...allowed },
    },
  ];
}

export function tcp(ports: readonly number[]) {
  return { ports: ports.map((port) => ({ protocol: "TCP", port })) };
}
