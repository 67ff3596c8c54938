import { IMAGE_PULL_POLICIES_ANNOTATION } from "../labels";
import { containersOf, imageVolumesOf, PODS } from "./pod-containers";
import { commaSeparated, hasAnnotation, type Restriction, tenantAnnotation } from "./restriction";

const policiesOf = (object: string) =>
  `(${object} == null ? [] : ${containersOf(object)}.map(container, container.name + ' ' + container.?imagePullPolicy.orValue('')) + ` +
  `${imageVolumesOf(object)}.map(image, image.?reference.orValue('') + ' ' + image.?pullPolicy.orValue('')))`;

/** Every container has one of the allowed pull policies. Containers that a Pod has already may stay as they are. */
export const imagePullPolicies: Restriction = {
  appliesTo: (tenant) =>
    tenant.spec.imagePullPolicies !== undefined || hasAnnotation(tenant, IMAGE_PULL_POLICIES_ANNOTATION),
  rules: PODS,
  variables: {
    pullPoliciesAllowed: `has(params.spec.imagePullPolicies) ? params.spec.imagePullPolicies : ${commaSeparated(tenantAnnotation(IMAGE_PULL_POLICIES_ANNOTATION))}`,
    pullPoliciesRestricted: `has(params.spec.imagePullPolicies) || ${tenantAnnotation(IMAGE_PULL_POLICIES_ANNOTATION)} != ''`,
    pullPoliciesBefore: policiesOf("oldObject"),
    refusedPullPolicies: `${policiesOf("object")}.filter(one, !(one in variables.pullPoliciesBefore)).map(one, one.split(' ')[1]).filter(one, !(one in variables.pullPoliciesAllowed))`,
  },
  validations: [
    {
      expression: "!variables.pullPoliciesRestricted || size(variables.refusedPullPolicies) == 0",
      messageExpression:
        "'the image pull policy ' + variables.refusedPullPolicies[0] + ' is not allowed in the tenant ' + params.metadata.name + '; allowed: ' + variables.pullPoliciesAllowed.join(', ')",
    },
  ],
};
