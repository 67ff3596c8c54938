import type { Manifest } from "../../../../providers/kubernetes/index";
import { policyBinding, validatingPolicy } from "../../../contract/index";

const NAME = "capsule-dismissed";

const subjectsOf = (object: string) =>
  `[${object}.spec.owner.kind + ' ' + ${object}.spec.owner.name] + ` +
  `${object}.spec.?additionalRoleBindings.orValue([]).map(binding, binding.subjects.map(one, one.kind + ' ' + one.name)).flatten()`;

/**
 * Warns of a change that takes rights in a tenant. What their holders made stays, such as bindings and tokens; no object
 * says who made it.
 */
export function dismissedPolicy(): Manifest[] {
  const policy = validatingPolicy(NAME, {
    rules: [{ apiGroups: ["capsule.clastix.io"], resources: ["tenants"], scope: "Cluster", operations: ["UPDATE"] }],
    variables: { dismissed: `(${subjectsOf("oldObject")}).filter(one, !(one in (${subjectsOf("object")})))` },
    validations: [
      {
        expression: "size(variables.dismissed) == 0",
        messageExpression:
          "variables.dismissed.join(', ') + ' may have made RoleBindings and tokens of ServiceAccounts in the tenant, which stay. Look for them in: ' + " +
          "oldObject.?status.?namespaces.orValue([]).join(', ')",
      },
    ],
  });
  return [policy, policyBinding(NAME, NAME, { validationActions: ["Warn"] })];
}
