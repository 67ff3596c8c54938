import type { Manifest } from "../../providers/kubernetes/client";
import { CREATED_ANNOTATION, OWNER_ANNOTATION, OWNER_UID_LABEL } from "../../providers/kubernetes/ownership";
import type { KindObject } from "../contract/object";
import { ADMINISTERS_TENANTS, isMember, userGroups } from "./admission/user-groups";
import { NODE_SELECTOR_ANNOTATION, TENANT_LABEL } from "./labels";
import type { CapsuleTenantSpec } from "./schema";

const API_VERSION = "admissionregistration.k8s.io/v1";

interface Validation {
  expression: string;
  messageExpression: string;
}

interface ResourceRule {
  apiGroups: string[];
  resources: string[];
  operations?: string[];
}

/** A policy whose expressions the API server evaluates itself, so that it cannot be down. */
function policy(
  name: string,
  rules: readonly ResourceRule[],
  spec: { variables: Record<string, string>; validations: Validation[]; [field: string]: unknown },
  matchConstraints: object = {},
): Manifest {
  const { variables, validations, ...rest } = spec;
  return {
    apiVersion: API_VERSION,
    kind: "ValidatingAdmissionPolicy",
    metadata: { name },
    spec: {
      // An expression that cannot be evaluated refuses: it guards what tenants may do to each other.
      failurePolicy: "Fail",
      matchConstraints: {
        resourceRules: rules.map(({ operations = ["CREATE", "UPDATE"], ...rule }) => ({
          ...rule,
          apiVersions: ["v1"],
          operations,
          scope: "*",
        })),
        ...matchConstraints,
      },
      variables: Object.entries(variables).map(([variable, expression]) => ({ name: variable, expression })),
      validations: validations.map((validation) => ({ ...validation, reason: "Forbidden" })),
      ...rest,
    },
  };
}

function binding(policyName: string, name: string, spec: object): Manifest {
  return {
    apiVersion: API_VERSION,
    kind: "ValidatingAdmissionPolicyBinding",
    metadata: { name },
    spec: { policyName, validationActions: ["Deny"], ...spec },
  };
}

/** The policies of all tenants, and the bindings of those that are the same for all. */
export function tenantPolicies(): Manifest[] {
  return [
    namespacePolicy(),
    binding("capsule-namespaces", "capsule-namespaces", {}),
    managedObjectPolicy(),
    binding("capsule-managed-objects", "capsule-managed-objects", {
      matchResources: { namespaceSelector: { matchExpressions: [{ key: TENANT_LABEL, operator: "Exists" }] } },
    }),
    ...RESTRICTIONS.map(({ name, rules, variables, validation }) =>
      policy(name, rules, {
        paramKind: { apiVersion: "capsule.clastix.io/v1alpha1", kind: "Tenant" },
        variables,
        validations: [validation],
      }),
    ),
  ];
}

/**
 * What binds a tenant to the policies of what it is restricted in: the policy's parameter is the Tenant itself, so that a
 * change of its lists holds at once. Made with the tenant, before its owner gets rights in any namespace.
 */
export function tenantPolicyBindings({ metadata: { name }, spec }: KindObject<CapsuleTenantSpec>): Manifest[] {
  return RESTRICTIONS.filter(({ field }) => spec[field] !== undefined).map(({ name: policyName }) =>
    binding(policyName, `${policyName}-${name}`, {
      paramRef: { name, parameterNotFoundAction: "Deny" },
      matchResources: { namespaceSelector: { matchLabels: { [TENANT_LABEL]: name } } },
    }),
  );
}

/**
 * Whose a namespace is, is said by its label and by its owner reference. Members of the groups do not choose these: for
 * what they create the webhook has done so. Everybody else but those who administer tenants leaves them alone, in every
 * namespace, since a label on one that is no tenant's would be theft as well. Labels can be changed through the
 * subresources, too.
 */
function namespacePolicy(): Manifest {
  const metadata = (object: string, map: "labels" | "annotations", key: string) =>
    `(${object} == null ? '' : ${object}.metadata.?${map}[?'${key}'].orValue(''))`;
  const isUnchanged = (map: "labels" | "annotations", key: string) =>
    `${metadata("object", map, key)} == ${metadata("oldObject", map, key)}`;
  const tenantsOf = (object: string) =>
    `${object} == null ? [] : ${object}.metadata.?ownerReferences.orValue([])` +
    ".filter(owner, owner.kind == 'Tenant' && owner.apiVersion.startsWith('capsule.clastix.io/')).map(owner, owner.uid)";
  const assigned = `(request.operation == 'CREATE' && ${isMember(userGroups())})`;
  return policy(
    "capsule-namespaces",
    [{ apiGroups: [""], resources: ["namespaces", "namespaces/status", "namespaces/finalize"] }],
    {
      variables: {
        tenant: metadata("oldObject", "labels", TENANT_LABEL),
        ownersBefore: tenantsOf("oldObject"),
        ownersAfter: tenantsOf("object"),
      },
      validations: [
        {
          expression: `${isUnchanged("labels", TENANT_LABEL)} || ${assigned} || ${ADMINISTERS_TENANTS}`,
          messageExpression: `'the label ${TENANT_LABEL} says whose a namespace is; it cannot be set, changed or removed' + (variables.tenant == '' ? '' : ': this namespace is of the tenant ' + variables.tenant)`,
        },
        {
          expression: `variables.ownersBefore == variables.ownersAfter || ${assigned} || ${ADMINISTERS_TENANTS}`,
          messageExpression:
            "'a namespace keeps its tenant: owner references to a Tenant cannot be set, changed or removed'",
        },
        {
          expression: [
            isUnchanged("labels", OWNER_UID_LABEL),
            isUnchanged("annotations", OWNER_ANNOTATION),
            isUnchanged("annotations", CREATED_ANNOTATION),
          ]
            .join(" && ")
            .concat(` || ${ADMINISTERS_TENANTS}`),
          messageExpression: "'labels and annotations of kindstack.dev are set by Kindstack alone'",
        },
        {
          expression: `variables.tenant == '' || ${isUnchanged("annotations", NODE_SELECTOR_ANNOTATION)} || ${ADMINISTERS_TENANTS}`,
          messageExpression: `'the annotation ${NODE_SELECTOR_ANNOTATION} follows the nodeSelector of the tenant ' + variables.tenant`,
        },
      ],
    },
  );
}

/** What Kindstack makes in a tenant's namespace limits its owner; who administers tenants changes the Tenant instead. */
function managedObjectPolicy(): Manifest {
  const operations = ["CREATE", "UPDATE", "DELETE"];
  return policy(
    "capsule-managed-objects",
    [
      { apiGroups: [""], resources: ["limitranges", "resourcequotas"], operations },
      { apiGroups: ["networking.k8s.io"], resources: ["networkpolicies"], operations },
      { apiGroups: ["rbac.authorization.k8s.io"], resources: ["rolebindings"], operations },
    ],
    {
      matchConditions: [
        {
          // They empty namespaces that are deleted.
          name: "no-controller-of-kubernetes",
          expression:
            "!('system:serviceaccounts:kube-system' in request.userInfo.groups || request.userInfo.username.startsWith('system:kube-'))",
        },
      ],
      variables: {},
      validations: [
        {
          expression: ADMINISTERS_TENANTS,
          messageExpression: `request.resource.resource + ' with the label ${OWNER_UID_LABEL} are managed by Kindstack: only the Tenant ' + namespaceObject.metadata.labels['${TENANT_LABEL}'] + ' can be changed'`,
        },
      ],
    },
    // Of an update, both states are looked at: taking the label off does not help.
    { objectSelector: { matchExpressions: [{ key: OWNER_UID_LABEL, operator: "Exists" }] } },
  );
}

interface Restriction {
  /** Of the policy; no name is another's beginning. */
  name: string;
  field: "ingressClasses" | "storageClasses" | "containerRegistries" | "externalServiceIPs";
  rules: ResourceRule[];
  variables: Record<string, string>;
  validation: Validation;
}

/** What is allowed by a list and an expression, as variables `allowed`, `regex` and, for people, `choice`. */
function allowedList(field: Restriction["field"]): Record<string, string> {
  return {
    isRestricted: `has(params.spec.${field})`,
    allowed: `params.spec.?${field}.?allowed.orValue([])`,
    regex: `params.spec.?${field}.?allowedRegex.orValue('')`,
    choice:
      "size(variables.allowed) == 0 && variables.regex == '' ? 'none' : " +
      "variables.allowed.join(', ') + (variables.regex == '' ? '' : (size(variables.allowed) == 0 ? '' : ', and ') + 'what matches ' + variables.regex)",
  };
}

/** In CEL, of a variable: whether the list or the expression has it. RE2 takes time linear in its length. */
const isAllowed = (value: string) =>
  `(${value} in variables.allowed || (variables.regex != '' && ${value}.matches(variables.regex)))`;

const ANNOTATED_CLASS = "metadata.?annotations[?'kubernetes.io/ingress.class'].orValue('')";
const ingressClass = (object: string) => `${object}.spec.?ingressClassName.orValue(${object}.${ANNOTATED_CLASS})`;
const IMAGES =
  "(SPEC.?containers.orValue([]) + SPEC.?initContainers.orValue([]) + SPEC.?ephemeralContainers.orValue([]))" +
  ".map(container, container.?image.orValue('')) + " +
  "SPEC.?volumes.orValue([]).filter(volume, has(volume.image)).map(volume, volume.image.?reference.orValue(''))";
const imagesOf = (object: string) => IMAGES.replaceAll("SPEC", `${object}.spec`);

/** What is in use already stays so when a list becomes shorter: else nothing else of such an object could be changed. */
const RESTRICTIONS: readonly Restriction[] = [
  {
    name: "capsule-ingress-classes",
    field: "ingressClasses",
    rules: [{ apiGroups: ["networking.k8s.io"], resources: ["ingresses"] }],
    variables: { ...allowedList("ingressClasses"), class: ingressClass("object") },
    validation: {
      expression: `!variables.isRestricted || ${isAllowed("variables.class")} || (oldObject != null && ${ingressClass("oldObject")} == variables.class)`,
      messageExpression:
        "(variables.class == '' ? 'an ingress class must be named' : 'the ingress class ' + variables.class + ' is not allowed') + ' in the tenant ' + params.metadata.name + '; allowed: ' + variables.choice",
    },
  },
  {
    name: "capsule-storage-classes",
    field: "storageClasses",
    rules: [{ apiGroups: [""], resources: ["persistentvolumeclaims"] }],
    variables: {
      ...allowedList("storageClasses"),
      class: "object.spec.?storageClassName.orValue('')",
    },
    validation: {
      expression: `!variables.isRestricted || ${isAllowed("variables.class")} || (oldObject != null && oldObject.spec.?storageClassName.orValue('') == variables.class)`,
      messageExpression:
        "(variables.class == '' ? 'a storage class must be named' : 'the storage class ' + variables.class + ' is not allowed') + ' in the tenant ' + params.metadata.name + '; allowed: ' + variables.choice",
    },
  },
  {
    name: "capsule-container-registries",
    field: "containerRegistries",
    rules: [{ apiGroups: [""], resources: ["pods", "pods/ephemeralcontainers"] }],
    variables: {
      ...allowedList("containerRegistries"),
      before: `oldObject == null ? [] : ${imagesOf("oldObject")}`,
      // The first part of an image's name is a registry when it can be a host; what has none is Docker's.
      refused: `(${imagesOf("object")}).filter(image, !(image in variables.before)).map(image, image.contains('/') && image.split('/')[0].matches('[.:]|^localhost$') ? image.split('/')[0] : 'docker.io').filter(registry, !${isAllowed("registry")})`,
    },
    validation: {
      expression: "!variables.isRestricted || size(variables.refused) == 0",
      messageExpression:
        "'the registry ' + variables.refused[0] + ' is not allowed in the tenant ' + params.metadata.name + '; allowed: ' + variables.choice",
    },
  },
  {
    name: "capsule-external-service-ips",
    field: "externalServiceIPs",
    rules: [{ apiGroups: [""], resources: ["services"] }],
    variables: {
      allowed: "params.spec.?externalServiceIPs.?allowed.orValue([])",
      before: "oldObject == null ? [] : oldObject.spec.?externalIPs.orValue([])",
      refused:
        "object.spec.?externalIPs.orValue([]).filter(address, !(address in variables.before) && !(isIP(address) && variables.allowed.exists(range, isCIDR(range) ? cidr(range).containsIP(ip(address)) : ip(range) == ip(address))))",
    },
    validation: {
      expression: "!has(params.spec.externalServiceIPs) || size(variables.refused) == 0",
      messageExpression:
        "'the external address ' + variables.refused[0] + ' is not allowed in the tenant ' + params.metadata.name + '; allowed: ' + (size(variables.allowed) == 0 ? 'none' : variables.allowed.join(', '))",
    },
  },
];
