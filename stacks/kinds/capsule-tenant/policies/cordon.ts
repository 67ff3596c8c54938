import type { Manifest } from "../../../../providers/kubernetes/index";
import { validatingPolicy } from "../../../contract/index";
import { ADMINISTERS_TENANTS, cordonExempt, isMember } from "../admission/user-groups";
import { TENANT_LABEL } from "../labels";
import type { CapsuleTenant } from "../schema";
import { NO_CONTROLLER_OF_KUBERNETES } from "./managed-objects";
import { tenantBinding } from "./policy";

const NAME = "capsule-cordon";

/** What running Pods write, and requests that are not stored: resources with their groups. */
const MADE_BY_WHAT_RUNS = [
  "/events",
  "events.k8s.io/events",
  "coordination.k8s.io/leases",
  "authorization.k8s.io/localsubjectaccessreviews",
];

/** On a Tenant, with the value `enabled`: Capsule's own way to cordon it. The field of the specification wins. */
const CORDON_LABEL = "capsule.clastix.io/cordon";

export function isCordoned({ metadata, spec }: CapsuleTenant): boolean {
  return spec.cordoned ?? metadata.labels?.[CORDON_LABEL] === "enabled";
}

/**
 * In a cordoned tenant, only those change anything who administer tenants, run the cluster or are exempt by name: no policy
 * sees whose rights another user has, such as a ServiceAccount of the tenant. What runs continues: its state is
 * written, and a Pod that ends is replaced.
 */
export function cordonPolicy(): Manifest {
  const exempt = cordonExempt();
  const operations = ["CREATE", "UPDATE", "DELETE", "CONNECT"];
  return validatingPolicy(NAME, {
    rules: [
      { apiGroups: ["*"], resources: ["*/*"], scope: "Namespaced", operations },
      { apiGroups: [""], resources: ["namespaces", "namespaces/*"], scope: "Cluster", operations },
    ],
    matchConditions: [
      NO_CONTROLLER_OF_KUBERNETES,
      { name: "no-node", expression: "!('system:nodes' in request.userInfo.groups)" },
    ],
    variables: {
      resource: "request.resource.group + '/' + request.resource.resource",
      isOfRunning: `request.?subResource.orValue('') == 'status' || variables.resource in ${JSON.stringify(MADE_BY_WHAT_RUNS)}`,
      isExempt: `request.userInfo.username in ${JSON.stringify(exempt)} || ${isMember(exempt)}`,
      tenant: `namespaceObject == null ? 'of this namespace' : namespaceObject.metadata.labels['${TENANT_LABEL}']`,
    },
    validations: [
      {
        expression: `variables.isOfRunning || variables.isExempt || ${ADMINISTERS_TENANTS}`,
        messageExpression:
          "'the tenant ' + variables.tenant + ' is cordoned: nothing can be created or changed in its namespaces; ask those who administer tenants'",
      },
    ],
  });
}

/** They exist only while the tenant is cordoned: they concern every request in its namespaces. */
export function cordonBindings(tenant: CapsuleTenant): Manifest[] {
  return isCordoned(tenant) ? [tenantBinding(NAME, tenant)] : [];
}
