import ipaddr from "ipaddr.js";
import { TerminalError } from "../contract/index";
import { ipBlocksOf } from "./network-policy";
import { type CapsuleTenant, isReserved, SERVICE_ACCOUNT_NAME } from "./schema";

/**
 * What the API server refuses by rules that a schema cannot say, for objects that come from a file. Only whether a
 * regular expression compiles is left to the API server: its syntax is not JavaScript's.
 *
 * @throws TerminalError naming the field, its value and what is allowed
 */
export function validateCapsuleTenant({ spec }: CapsuleTenant): void {
  const { owner, namespacesMetadata, externalServiceIPs, networkPolicies = [] } = spec;
  if (owner.kind === "ServiceAccount" && !new RegExp(SERVICE_ACCOUNT_NAME).test(owner.name)) {
    refuse("owner.name", owner.name, "must be system:serviceaccount:<namespace>:<name>");
  }
  for (const field of ["additionalLabels", "additionalAnnotations"] as const) {
    for (const key of Object.keys(namespacesMetadata?.[field] ?? {})) {
      if (isReserved(key)) refuse(`namespacesMetadata.${field}`, key, "is set by Kindstack or the API server");
    }
  }
  for (const [index, address] of (externalServiceIPs?.allowed ?? []).entries()) {
    if (!ipaddr.isValid(address) && !ipaddr.isValidCIDR(address)) {
      refuse(`externalServiceIPs.allowed.${index}`, address, "must be an address or a CIDR");
    }
  }
  for (const [index, policy] of networkPolicies.entries()) {
    for (const cidr of ipBlocksOf(policy).flatMap(({ cidr, except = [] }) => [cidr, ...except])) {
      if (!ipaddr.isValidCIDR(cidr)) refuse(`networkPolicies.${index}`, cidr, "must be a CIDR");
    }
  }
}

function refuse(field: string, value: string, allowed: string): never {
  throw new TerminalError("Invalid", `spec.${field}: ${JSON.stringify(value)} ${allowed}`);
}
