import { allowedIn, isAllowed, listVariables, type Restriction } from "./restriction";

/** All host names that an Ingress asks for: those of its rules, `''` for a rule of all hosts, and those of its certificates. */
const hostsOf = (object: string) =>
  `(${object} == null ? [] : ${object}.spec.?rules.orValue([]).map(rule, rule.?host.orValue('')) + ` +
  `${object}.spec.?tls.orValue([]).map(tls, tls.?hosts.orValue([])).flatten() + ` +
  `(has(${object}.spec.defaultBackend) ? [''] : []))`;

/**
 * An Ingress may ask for allowed host names only. One for all hosts, by a rule without a host or by a default backend,
 * would take those of others as well.
 */
export const ingressHostnames: Restriction = {
  appliesTo: ({ spec }) => spec.ingressHostnames !== undefined,
  rules: [{ apiGroups: ["networking.k8s.io"], resources: ["ingresses"] }],
  variables: {
    ...listVariables("ingressHostnames"),
    hostnamesBefore: hostsOf("oldObject"),
    refusedHostnames: `${hostsOf("object")}.filter(host, !(host in variables.hostnamesBefore) && !(host != '' && ${isAllowed("ingressHostnames", "host")}))`,
  },
  validations: [
    {
      expression: "!variables.ingressHostnamesRestricted || size(variables.refusedHostnames) == 0",
      messageExpression: `(variables.refusedHostnames[0] == '' ? 'an Ingress for all host names is not allowed' : 'the host name ' + variables.refusedHostnames[0] + ' is not allowed') + ${allowedIn("ingressHostnames")}`,
    },
  ],
};
