import { collisionScope, HOSTNAME_COLLISION_ANNOTATION } from "../admission/ingress-collisions";
import { type CapsuleTenant, COLLISION_SCOPES } from "../schema";
import { type Restriction, tenantAnnotation } from "./allowed-list";
import { DNS_KEYS, ROUTING_KEYS } from "./controllers";

/*
 * Where the host names of Ingresses are compared, what cannot be compared is refused. What an object has already may stay.
 */

const compares = (tenant: CapsuleTenant) => (collisionScope(tenant) ?? "Disabled") !== "Disabled";
const COMPARES = `params.spec.?hostnameCollisionScope.orValue(${tenantAnnotation(HOSTNAME_COLLISION_ANNOTATION)}) in ${JSON.stringify(COLLISION_SCOPES.filter((scope) => scope !== "Disabled"))}`;

/** In CEL: the keys of new annotations that are in effect, among those that an expression matches. */
const newAnnotations = (expression: string) =>
  `object.metadata.?annotations.orValue({}).filter(key, key.matches(${JSON.stringify(expression)}) && !(object.metadata.annotations[key] in ['', 'false']) && ` +
  `(oldObject == null || oldObject.metadata.?annotations[?key].orValue('') != object.metadata.annotations[key]))`;

const pathsOf = (object: string) =>
  `${object}.spec.?rules.orValue([]).map(rule, rule.?http.?paths.orValue([]).map(path, path.?path.orValue(''))).flatten()`;
/** A path that some controllers read as an expression; they agree on an asterisk for the rest, at its end. */
const EXPRESSION = "^/~|[\\[\\](){}^$|+?\\\\]|[*].|[^/][*]$";

const inTenant = "'where the tenant ' + params.metadata.name + ' has its host names compared'";

/** Annotations and paths of Ingresses. */
export const uncomparedRouting: Omit<Restriction, "rule"> = {
  appliesTo: compares,
  variables: {
    uncomparedRouting: newAnnotations(ROUTING_KEYS),
    uncomparedPaths: `${pathsOf("object")}.filter(path, path.matches(${JSON.stringify(EXPRESSION)}) && (oldObject == null || !(path in ${pathsOf("oldObject")})))`,
  },
  validations: [
    {
      expression: `!(${COMPARES}) || size(variables.uncomparedRouting) == 0`,
      messageExpression: `'the annotation ' + variables.uncomparedRouting[0] + ' is not allowed ' + ${inTenant} + ': write each host name and path as a rule'`,
    },
    {
      expression: `!(${COMPARES}) || size(variables.uncomparedPaths) == 0`,
      messageExpression: `'the path ' + variables.uncomparedPaths[0] + ' can be an expression, which is not allowed ' + ${inTenant}`,
    },
  ],
};

/** Names in DNS by annotations: only a list of host names says which are the tenant's. */
export const uncomparedNames: Omit<Restriction, "rule"> = {
  appliesTo: compares,
  variables: { uncomparedNames: newAnnotations(DNS_KEYS) },
  validations: [
    {
      expression: `!(${COMPARES}) || has(params.spec.ingressHostnames) || size(variables.uncomparedNames) == 0`,
      messageExpression: `'the annotation ' + variables.uncomparedNames[0] + ' is not allowed ' + ${inTenant} + ' and has no ingressHostnames'`,
    },
  ],
};
