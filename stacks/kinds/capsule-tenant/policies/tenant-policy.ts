import type { Manifest } from "../../../../providers/kubernetes/index";
import type { KindObject } from "../../../contract/index";
import { validatingPolicy } from "../../../contract/index";
import type { CapsuleTenant } from "../schema";
import type { Restriction } from "./allowed-list";
import { tenantBinding } from "./policy";
import { RESTRICTIONS } from "./restrictions";

const NAME = "capsule-tenants";

/** On a request that asks whether a tenant's policy is enforced; it is never stored. */
const PROBE_ANNOTATION = "kindstack.dev/enforcement-probe";

/**
 * Shows that the policy is enforced: a LimitRange with this annotation is refused, and the message has the version of
 * the Tenant that the API server uses. It is sent as a dry run.
 */
const PROBE: Omit<Restriction, "appliesTo"> = {
  rule: { apiGroups: [""], resources: ["limitranges"], scope: "Namespaced", operations: ["CREATE"] },
  validations: [
    {
      expression: `!has(object.metadata.annotations) || !('${PROBE_ANNOTATION}' in object.metadata.annotations)`,
      messageExpression:
        "'enforced for ' + params.metadata.uid + ' of generation ' + string(params.metadata.generation)",
    },
  ],
};

/**
 * The policy of all tenants that restrict anything. It is one policy for all restrictions, so that a tenant needs one
 * binding: the API server compares each request in the cluster with every binding of a policy.
 */
export function tenantPolicy(): Manifest {
  const all: readonly Omit<Restriction, "appliesTo">[] = [PROBE, ...RESTRICTIONS];
  return validatingPolicy(NAME, {
    paramKind: { apiVersion: "capsule.clastix.io/v1alpha1", kind: "Tenant" },
    rules: [...new Set(all.map(({ rule }) => rule))],
    variables: Object.assign({}, ...all.map(({ variables }) => variables)),
    validations: all.flatMap(({ rule, validations }) =>
      validations.map(({ expression, messageExpression }) => ({
        expression: `!(request.resource.resource in ${JSON.stringify(resourcesOf(rule))}) || (${expression})`,
        messageExpression,
      })),
    ),
  });
}

/** Without subresources, which the API server names apart. */
function resourcesOf({ resources }: Restriction["rule"]): string[] {
  return [...new Set(resources.map((resource) => resource.split("/", 1).join()))];
}

/** What binds a tenant to the policy, if it restricts anything: the policy's parameter is the Tenant itself. */
export function tenantPolicyBindings(tenant: CapsuleTenant): Manifest[] {
  const paramRef = { name: tenant.metadata.name, parameterNotFoundAction: "Deny" };
  return isRestricted(tenant) ? [tenantBinding(NAME, tenant, { paramRef })] : [];
}

/** Whether there is anything for the API server to enforce in the tenant's namespaces. */
export function isRestricted(tenant: CapsuleTenant): boolean {
  return RESTRICTIONS.some((restriction) => restriction.appliesTo(tenant));
}

/** An object that the API server refuses, with {@link isEnforcedFor}'s answer in the message, once it enforces the policy. */
export function enforcementProbe(namespace: string): Manifest {
  return {
    apiVersion: "v1",
    kind: "LimitRange",
    metadata: { name: "kindstack-enforcement-probe", namespace, annotations: { [PROBE_ANNOTATION]: NAME } },
    spec: { limits: [] },
  };
}

/** Whether the refusal of a probe says that the API server enforces what the Tenant, as it is, restricts. */
export function isEnforcedFor({ metadata: { uid, generation = 0 } }: KindObject, refusal: string): boolean {
  const [, seenUid, seenGeneration] = /enforced for (\S+) of generation (\d+)/.exec(refusal) ?? [];
  return seenUid === uid && Number(seenGeneration) >= generation;
}
