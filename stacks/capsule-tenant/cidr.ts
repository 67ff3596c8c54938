import ipaddr from "ipaddr.js";

/** The network that an address with a prefix length lies in, in the one form that the API server takes. */
export function toNetwork(cidr: string): string {
  const [, length] = ipaddr.parseCIDR(cidr);
  const network = cidr.includes(":")
    ? ipaddr.IPv6.networkAddressFromCIDR(cidr).toRFC5952String()
    : ipaddr.IPv4.networkAddressFromCIDR(cidr).toString();
  return `${network}/${length}`;
}

export function isCidr(text: string): boolean {
  return ipaddr.isValidCIDR(text);
}

export function isAddress(text: string): boolean {
  return ipaddr.isValid(text);
}
