import type { Manifest } from "../../../../providers/kubernetes/index";
import { ADMINISTERS_TENANTS, isMember, userGroups } from "../admission/user-groups";
import { TENANT_LABEL } from "../labels";
import type { CapsuleTenant } from "../schema";
import { NO_CONTROLLER_OF_KUBERNETES } from "./managed-objects";
import { tenantBinding, validatingPolicy } from "./policy";

const NAME = "capsule-cordon";

/** Resources that running Pods create, and requests that are not stored. */
export const MADE_BY_WHAT_RUNS = ["events", "leases", "endpoints", "endpointslices", "localsubjectaccessreviews"];

/** On a Tenant, with the value `enabled`: Capsule's own way to cordon it. The field of the specification wins. */
const CORDON_LABEL = "capsule.clastix.io/cordon";

/** Whether nothing new may be created in the tenant. */
export function isCordoned({ metadata, spec }: CapsuleTenant): boolean {
  return spec.cordoned ?? metadata.labels?.[CORDON_LABEL] === "enabled";
}

/**
 * In a cordoned tenant, members of the user groups change nothing, and only Kubernetes makes anything new: what
 * runs continues, and a Pod that ends is replaced.
 */
export function cordonPolicy(): Manifest {
  return validatingPolicy(NAME, {
    rules: [{ apiGroups: ["*"], resources: ["*/*"], operations: ["CREATE", "UPDATE", "DELETE"] }],
    matchConditions: [
      NO_CONTROLLER_OF_KUBERNETES,
      { name: "no-node", expression: "!('system:nodes' in request.userInfo.groups)" },
    ],
    variables: {
      isOfRunning: `(has(request.subResource) && !(request.subResource in ['', 'scale'])) || request.resource.resource in ${JSON.stringify(MADE_BY_WHAT_RUNS)}`,
    },
    validations: [
      {
        expression: `variables.isOfRunning || !(${isMember(userGroups())} || request.operation == 'CREATE') || ${ADMINISTERS_TENANTS}`,
        messageExpression: `'the tenant ' + namespaceObject.metadata.labels['${TENANT_LABEL}'] + ' is cordoned: nothing can be created or changed in its namespaces; ask those who administer tenants'`,
      },
    ],
  });
}

/** They exist only while the tenant is cordoned: they concern every request in its namespaces. */
export function cordonBindings(tenant: CapsuleTenant): Manifest[] {
  return isCordoned(tenant) ? [tenantBinding(NAME, tenant)] : [];
}
