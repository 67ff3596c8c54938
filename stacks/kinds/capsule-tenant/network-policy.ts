import ipaddr from "ipaddr.js";
import type { CapsuleTenantSpec } from "./schema";

type NetworkPolicySpec = NonNullable<CapsuleTenantSpec["networkPolicies"]>[number];

export function ipBlocksOf({ ingress = [], egress = [] }: NetworkPolicySpec) {
  const peers = [...ingress.flatMap(({ from = [] }) => from), ...egress.flatMap(({ to = [] }) => to)];
  return peers.flatMap(({ ipBlock }) => ipBlock ?? []);
}

/** The policy with the networks of its addresses: the API server takes no others (`192.160.0.0/12`, not `192.168.0.0/12`). */
export function withNetworks(policy: NetworkPolicySpec): NetworkPolicySpec {
  const copy = structuredClone(policy);
  for (const block of ipBlocksOf(copy)) {
    block.cidr = toNetwork(block.cidr);
    if (block.except) block.except = block.except.map(toNetwork);
  }
  return copy;
}

/** The network that an address with a prefix length lies in, in the one form that the API server takes. */
function toNetwork(cidr: string): string {
  const [, length] = ipaddr.parseCIDR(cidr);
  const network = cidr.includes(":")
    ? ipaddr.IPv6.networkAddressFromCIDR(cidr).toRFC5952String()
    : ipaddr.IPv4.networkAddressFromCIDR(cidr).toString();
  return `${network}/${length}`;
}
