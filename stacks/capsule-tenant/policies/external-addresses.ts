import type { Restriction } from "./restriction";

/** Services have external addresses of the allowed ranges only. An address that a Service has already may stay. */
export const externalAddresses: Restriction = {
  appliesTo: ({ spec }) => spec.externalServiceIPs !== undefined,
  rules: [{ apiGroups: [""], resources: ["services"] }],
  variables: {
    addressesAllowed: "params.spec.?externalServiceIPs.?allowed.orValue([])",
    addressesBefore: "oldObject == null ? [] : oldObject.spec.?externalIPs.orValue([])",
    refusedAddresses:
      "object.spec.?externalIPs.orValue([]).filter(address, !(address in variables.addressesBefore) && !(isIP(address) && variables.addressesAllowed.exists(range, isCIDR(range) ? cidr(range).containsIP(ip(address)) : ip(range) == ip(address))))",
  },
  validations: [
    {
      expression: "!has(params.spec.externalServiceIPs) || size(variables.refusedAddresses) == 0",
      messageExpression:
        "'the external address ' + variables.refusedAddresses[0] + ' is not allowed in the tenant ' + params.metadata.name + '; allowed: ' + (size(variables.addressesAllowed) == 0 ? 'none' : variables.addressesAllowed.join(', '))",
    },
  ],
};
