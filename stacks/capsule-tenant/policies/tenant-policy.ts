import type { Manifest } from "../../../providers/kubernetes/index";
import type { KindObject } from "../../contract/index";
import { PROBE_ANNOTATION, TENANT_LABEL } from "../labels";
import type { CapsuleTenant } from "../schema";
import { containerRegistries } from "./container-registries";
import { externalAddresses } from "./external-addresses";
import { imagePullPolicies } from "./image-pull-policies";
import { ingressClasses } from "./ingress-classes";
import { ingressHostnames } from "./ingress-hostnames";
import { policyBinding, type ResourceRule, validatingPolicy } from "./policy";
import { priorityClasses } from "./priority-classes";
import type { Restriction } from "./restriction";
import { serviceTypes } from "./service-types";
import { storageClasses } from "./storage-classes";

const NAME = "capsule-tenants";

/** All that a tenant may be restricted in. What is in use already stays so when a list becomes shorter. */
const RESTRICTIONS: readonly Restriction[] = [
  ingressClasses,
  ingressHostnames,
  storageClasses,
  containerRegistries,
  imagePullPolicies,
  priorityClasses,
  externalAddresses,
  serviceTypes,
];

const TENANT_KIND = { apiVersion: "capsule.clastix.io/v1alpha1", kind: "Tenant" };

/**
 * Shows that the policy is enforced: a LimitRange with this annotation is refused, with what the API server goes by in the
 * message. It is sent as a dry run.
 */
const PROBE: Restriction = {
  appliesTo: () => false,
  rules: [{ apiGroups: [""], resources: ["limitranges"], operations: ["CREATE"] }],
  variables: {},
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
  const all = [PROBE, ...RESTRICTIONS];
  return validatingPolicy(NAME, {
    paramKind: TENANT_KIND,
    rules: distinct(all.flatMap(({ rules }) => rules)),
    variables: Object.assign({}, ...all.map(({ variables }) => variables)),
    validations: all.flatMap(({ rules, validations }) =>
      validations.map(({ expression, messageExpression }) => ({
        expression: `!(${isAbout(rules)}) || (${expression})`,
        messageExpression,
      })),
    ),
  });
}

/** What binds a tenant to the policy, if it restricts anything: the policy's parameter is the Tenant itself. */
export function tenantPolicyBindings(tenant: CapsuleTenant): Manifest[] {
  if (!isRestricted(tenant)) return [];
  const { name } = tenant.metadata;
  return [
    policyBinding(NAME, `${NAME}-${name}`, {
      paramRef: { name, parameterNotFoundAction: "Deny" },
      matchResources: { namespaceSelector: { matchLabels: { [TENANT_LABEL]: name } } },
    }),
  ];
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

/** In CEL: whether a request is one of these. */
function isAbout(rules: readonly ResourceRule[]): string {
  const resources = new Set(rules.flatMap(({ resources }) => resources.map((name) => name.split("/")[0])));
  return [...resources].map((resource) => `request.resource.resource == '${resource}'`).join(" || ");
}

function distinct(rules: readonly ResourceRule[]): ResourceRule[] {
  return [...new Map(rules.map((rule) => [JSON.stringify(rule), rule])).values()];
}
