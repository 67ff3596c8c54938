import type { KubernetesClient, LiveObject } from "../../providers/kubernetes/client";
import { known } from "../../providers/kubernetes/client";
import type { Configuration } from "./configuration";

const SLICES = { apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice" } as const;
/** The Services of clusters' DNS: Kubernetes' own and its successors, and OpenShift's. */
const DNS = "kubernetes.io/service-name in (kube-dns,coredns,dns-default)";

/** What the cluster's ports are, and the configuration's NetworkPolicy keeps the operator from. */
export async function closedPorts(
  { networkPolicy, egressPorts, dnsPorts }: Configuration,
  client: Pick<KubernetesClient, "get" | "list">,
): Promise<string[]> {
  if (!networkPolicy) return [];
  const server = await known(client.get(SLICES, "kubernetes", "default"));
  const dns = (await client.list(SLICES, { labelSelector: DNS })).items;
  return [
    ...closed("the API server", "egressPorts", egressPorts, portsOf(server === undefined ? [] : [server], /^https$/)),
    ...closed("the cluster's DNS", "dnsPorts", dnsPorts, portsOf(dns, /^dns/)),
  ];
}

/** Of Pods and hosts: NetworkPolicies see connections after a Service's port has been translated. */
function portsOf(slices: readonly LiveObject[], name: RegExp): number[] {
  const ports = slices.flatMap((slice) => (slice.ports ?? []) as { name?: string; port?: number }[]);
  return [...new Set(ports.flatMap((port) => (name.test(port.name ?? "") && port.port ? [port.port] : [])))];
}

function closed(what: string, key: string, allowed: readonly number[], used: readonly number[]): string[] {
  return used
    .filter((port) => !allowed.includes(port))
    .map(
      (port) =>
        `${what} listens on port ${port}, and ${key} is ${allowed.join(", ")}; add it, or set networkPolicy to false`,
    );
}
