import { type Manifest, OWNER_UID_LABEL } from "../../../../providers/kubernetes/index";
import { policyBinding, validatingPolicy } from "../../../contract/index";
import { ADMINISTERS_TENANTS } from "../admission/user-groups";
import { TENANT_LABEL } from "../labels";

const NAME = "capsule-managed-objects";

/** In CEL: whether the user is a controller of Kubernetes. Controllers empty deleted namespaces, and run the workloads. */
export const IS_CONTROLLER_OF_KUBERNETES =
  "('system:serviceaccounts:kube-system' in request.userInfo.groups || request.userInfo.username.startsWith('system:kube-'))";
export const NO_CONTROLLER_OF_KUBERNETES = {
  name: "no-controller-of-kubernetes",
  expression: `!${IS_CONTROLLER_OF_KUBERNETES}`,
};

const isManaged = (object: string) =>
  `(${object} != null && '${OWNER_UID_LABEL}' in ${object}.metadata.?labels.orValue({}))`;

/**
 * What Kindstack makes in a tenant's namespace limits its owner; who administers tenants changes the Tenant instead. Its
 * names are reserved, so that none is taken before Kindstack makes it.
 */
export function managedObjectPolicy(): Manifest[] {
  const operations = ["CREATE", "UPDATE", "DELETE"];
  const scope = "Namespaced";
  const policy = validatingPolicy(NAME, {
    rules: [
      { apiGroups: [""], resources: ["limitranges", "resourcequotas"], scope, operations },
      { apiGroups: ["networking.k8s.io"], resources: ["networkpolicies"], scope, operations },
      { apiGroups: ["rbac.authorization.k8s.io"], resources: ["rolebindings"], scope, operations },
    ],
    matchConditions: [NO_CONTROLLER_OF_KUBERNETES],
    variables: {
      tenant: `namespaceObject.metadata.labels['${TENANT_LABEL}']`,
      // Of an update, both states are looked at: taking the label off does not help.
      isManaged: `${isManaged("object")} || ${isManaged("oldObject")}`,
    },
    validations: [
      {
        expression: `!variables.isManaged || ${ADMINISTERS_TENANTS}`,
        messageExpression: `request.resource.resource + ' with the label ${OWNER_UID_LABEL} are managed by Kindstack: only the Tenant ' + variables.tenant + ' can be changed'`,
      },
      {
        expression: `object == null || !object.metadata.name.matches('^capsule-' + variables.tenant + '-[0-9]+$') || ${ADMINISTERS_TENANTS}`,
        messageExpression: `'the name ' + object.metadata.name + ' is reserved for what Kindstack makes of the Tenant ' + variables.tenant`,
      },
    ],
  });
  const namespaceSelector = { matchExpressions: [{ key: TENANT_LABEL, operator: "Exists" }] };
  return [policy, policyBinding(NAME, NAME, { matchResources: { namespaceSelector } })];
}
