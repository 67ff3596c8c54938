import ipaddr from "ipaddr.js";
import { refuseBroadGroup } from "../../../providers/kubernetes/index";
import { TerminalError } from "../../contract/index";
import { HOSTNAME_COLLISION_ANNOTATION } from "./admission/ingress-collisions";
import { ipBlocksOf } from "./network-policy";
import { type CapsuleTenant, COLLISION_SCOPES, isReserved, SERVICE_ACCOUNT_NAME } from "./schema";

/** Roles that nearly everything in a namespace may be changed with. */
const ADMINISTRATORS = ["cluster-admin", "admin", "edit"];

/**
 * What the API server refuses by rules that a schema cannot say, for objects that come from a file. Only whether a
 * regular expression compiles is left to the API server: its syntax is not JavaScript's.
 *
 * @throws TerminalError naming the field, its value and what is allowed
 */
export function validateCapsuleTenant({ metadata, spec }: CapsuleTenant): void {
  const { owner, namespacesMetadata, externalServiceIPs, networkPolicies = [], additionalRoleBindings = [] } = spec;
  if (owner.kind === "ServiceAccount" && !new RegExp(SERVICE_ACCOUNT_NAME).test(owner.name)) {
    refuse("spec.owner.name", owner.name, "must be system:serviceaccount:<namespace>:<name>");
  }
  refuseBroadGroup(owner.name, "spec.owner.name");
  for (const [index, { clusterRoleName, subjects }] of additionalRoleBindings.entries()) {
    if (!ADMINISTRATORS.includes(clusterRoleName)) continue;
    for (const { name } of subjects) refuseBroadGroup(name, `spec.additionalRoleBindings.${index}.subjects`);
  }
  const scope = metadata.annotations?.[HOSTNAME_COLLISION_ANNOTATION];
  if (scope !== undefined && !COLLISION_SCOPES.some((allowed) => allowed === scope)) {
    refuse(
      `metadata.annotations.${HOSTNAME_COLLISION_ANNOTATION}`,
      scope,
      `must be one of ${COLLISION_SCOPES.join(", ")}`,
    );
  }
  for (const field of ["additionalLabels", "additionalAnnotations"] as const) {
    for (const key of Object.keys(namespacesMetadata?.[field] ?? {})) {
      if (isReserved(key)) refuse(`spec.namespacesMetadata.${field}`, key, "is set by Kindstack or the API server");
    }
  }
  for (const [index, address] of (externalServiceIPs?.allowed ?? []).entries()) {
    if (!ipaddr.isValid(address) && !ipaddr.isValidCIDR(address)) {
      refuse(`spec.externalServiceIPs.allowed.${index}`, address, "must be an address or a CIDR");
    }
  }
  for (const [index, policy] of networkPolicies.entries()) {
    for (const cidr of ipBlocksOf(policy).flatMap(({ cidr, except = [] }) => [cidr, ...except])) {
      if (!ipaddr.isValidCIDR(cidr)) refuse(`spec.networkPolicies.${index}`, cidr, "must be a CIDR");
    }
  }
}

function refuse(field: string, value: string, allowed: string): never {
  throw new TerminalError("Invalid", `${field}: ${JSON.stringify(value)} ${allowed}`);
}
