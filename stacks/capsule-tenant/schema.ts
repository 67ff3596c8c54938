import Type from "typebox";
import type { KindObject } from "../contract/index";
import { type Amounts, QUANTITY } from "./quantity";

/*
 * Every list and every string has a bound: the API server counts the cost of the rules with them, and refuses a CRD
 * whose rules could take too long.
 */

/** A map of strings; TypeBox's own records are written with a pattern, which CRDs do not know. */
const stringMap = (options: Record<string, unknown> = {}) =>
  Type.Unsafe<Record<string, string>>({
    type: "object",
    additionalProperties: { type: "string", maxLength: 4096 },
    maxProperties: 64,
    ...options,
  });

const amounts = (description: string) =>
  Type.Unsafe<Amounts>({
    type: "object",
    description,
    additionalProperties: {
      anyOf: [{ type: "integer" }, { type: "string" }],
      "x-kubernetes-int-or-string": true,
      maxLength: 64,
      minimum: 0,
      pattern: QUANTITY,
    },
    maxProperties: 64,
  });

const name = () => Type.String({ minLength: 1, maxLength: 253 });

const labelSelector = (description: string) =>
  Type.Object(
    {
      matchLabels: Type.Optional(stringMap()),
      matchExpressions: Type.Optional(
        Type.Array(
          Type.Object({
            key: Type.String({ maxLength: 317 }),
            operator: Type.Enum(["In", "NotIn", "Exists", "DoesNotExist"], { type: "string" }),
            values: Type.Optional(Type.Array(Type.String({ maxLength: 63 }), { maxItems: 64 })),
          }),
          { maxItems: 16 },
        ),
      ),
    },
    { description },
  );

const regularExpression = () =>
  Type.String({
    description: "A regular expression in RE2 syntax; an empty one matches nothing.",
    maxLength: 512,
    // An expression that does not compile is an error of the rule, which refuses the object; `||` would hide it.
    "x-kubernetes-validations": [
      { rule: "''.matches(self) in [true, false]", message: "must be a regular expression in RE2's syntax" },
    ],
  });

/** What may be used: what is named exactly, and what an expression matches. */
const allowedList = (description: string) =>
  Type.Object(
    {
      allowed: Type.Optional(Type.Array(Type.String({ maxLength: 253 }), { maxItems: 100 })),
      allowedRegex: Type.Optional(regularExpression()),
    },
    { description },
  );
export type AllowedList = Type.Static<ReturnType<typeof allowedList>>;

/** What may not be used: what is named exactly, and what an expression matches. */
const deniedList = (description: string) =>
  Type.Object(
    {
      denied: Type.Optional(Type.Array(Type.String({ maxLength: 317 }), { maxItems: 100 })),
      deniedRegex: Type.Optional(regularExpression()),
    },
    { description },
  );

const limitRange = Type.Object({
  limits: Type.Array(
    Type.Object({
      type: Type.Enum(["Pod", "Container", "PersistentVolumeClaim"], { type: "string" }),
      max: Type.Optional(amounts("Maximum for one.")),
      min: Type.Optional(amounts("Minimum for one.")),
      default: Type.Optional(amounts("The limits of a container that names none.")),
      defaultRequest: Type.Optional(amounts("The requests of a container that names none.")),
      maxLimitRequestRatio: Type.Optional(amounts("Maximum ratio of limit to request.")),
    }),
    { maxItems: 32 },
  ),
});

const cidr = () => Type.String({ maxLength: 64, format: "cidr" });

const peers = (description: string) =>
  Type.Optional(
    Type.Array(
      Type.Object({
        ipBlock: Type.Optional(
          Type.Object({ cidr: cidr(), except: Type.Optional(Type.Array(cidr(), { maxItems: 64 })) }),
        ),
        namespaceSelector: Type.Optional(labelSelector("The namespaces; all if empty.")),
        podSelector: Type.Optional(labelSelector("The Pods; all if empty.")),
      }),
      { description, maxItems: 64 },
    ),
  );

const ports = () =>
  Type.Optional(
    Type.Array(
      Type.Object({
        protocol: Type.Optional(Type.Enum(["TCP", "UDP", "SCTP"], { type: "string" })),
        port: Type.Optional(
          Type.Unsafe<string | number>({
            anyOf: [{ type: "integer" }, { type: "string" }],
            "x-kubernetes-int-or-string": true,
            maxLength: 15,
          }),
        ),
        endPort: Type.Optional(Type.Integer({ minimum: 1, maximum: 65535, format: "int32" })),
      }),
      { maxItems: 64 },
    ),
  );

const networkPolicy = Type.Object({
  podSelector: labelSelector("The Pods that the policy is for; all if empty."),
  policyTypes: Type.Optional(
    Type.Array(Type.Enum(["Ingress", "Egress"], { type: "string" }), { maxItems: 2, "x-kubernetes-list-type": "set" }),
  ),
  ingress: Type.Optional(
    Type.Array(Type.Object({ from: peers("Who may connect; anyone if there are none."), ports: ports() }), {
      maxItems: 32,
    }),
  ),
  egress: Type.Optional(
    Type.Array(Type.Object({ to: peers("What may be connected to; anything if there are none."), ports: ports() }), {
      maxItems: 32,
    }),
  ),
});

const SCOPES = [
  "Terminating",
  "NotTerminating",
  "BestEffort",
  "NotBestEffort",
  "PriorityClass",
  "CrossNamespacePodAffinity",
  "VolumeAttributesClass",
];

const resourceQuota = Type.Object({
  hard: Type.Optional(amounts("What the tenant may use in all of its namespaces together, by resource.")),
  scopes: Type.Optional(
    Type.Array(Type.Enum(SCOPES, { type: "string" }), { maxItems: 8, "x-kubernetes-list-type": "set" }),
  ),
  scopeSelector: Type.Optional(
    Type.Object({
      matchExpressions: Type.Optional(
        Type.Array(
          Type.Object({
            scopeName: Type.Enum(SCOPES, { type: "string" }),
            operator: Type.Enum(["In", "NotIn", "Exists", "DoesNotExist"], { type: "string" }),
            values: Type.Optional(Type.Array(Type.String({ maxLength: 253 }), { maxItems: 64 })),
          }),
          { maxItems: 8 },
        ),
      ),
    }),
  ),
});
export type ResourceQuotaItem = Type.Static<typeof resourceQuota>;

const RBAC_GROUP = "rbac.authorization.k8s.io";

const subject = Type.Object({
  kind: Type.Enum(["User", "Group", "ServiceAccount"], { type: "string" }),
  name: name(),
  apiGroup: Type.Optional(Type.Enum(["", RBAC_GROUP], { type: "string" })),
  namespace: Type.Optional(Type.String({ maxLength: 63 })),
});

/** What Kindstack and the API server go by; a tenant that set it could take an object for another's. */
const RESERVED_PREFIXES = ["capsule.clastix.io/", "kindstack.dev/", "kubernetes.io/metadata."];
const RESERVED_METADATA = {
  rule: `self.all(key, !(${RESERVED_PREFIXES.map((prefix) => `key.startsWith('${prefix}')`).join(" || ")}))`,
  message: `${RESERVED_PREFIXES.map((prefix) => `${prefix}*`).join(", ")} are set by Kindstack and by the API server`,
};

export function isReserved(key: string): boolean {
  return RESERVED_PREFIXES.some((prefix) => key.startsWith(prefix));
}

/** How a ServiceAccount is called as a user: `system:serviceaccount:<namespace>:<name>`. */
export const SERVICE_ACCOUNT_NAME = "^system:serviceaccount:[^:]+:[^:]+$";

const flag = (description: string) => Type.Optional(Type.Boolean({ description }));
const allowed = (description: string) => Type.Optional(allowedList(description));
const denied = (description: string) => Type.Optional(deniedList(description));
const forEachNamespace = <Item extends Type.TSchema>(item: Item, description: string) =>
  Type.Optional(Type.Array(item, { description, maxItems: 32 }));
const additionalMetadata = {
  additionalLabels: Type.Optional(stringMap({ "x-kubernetes-validations": [RESERVED_METADATA] })),
  additionalAnnotations: Type.Optional(stringMap({ "x-kubernetes-validations": [RESERVED_METADATA] })),
};

export const capsuleTenantSpec = Type.Object({
  owner: Type.Object(
    {
      kind: Type.Enum(["User", "Group", "ServiceAccount"], { type: "string" }),
      name: name(),
    },
    {
      description: "Who creates the tenant's namespaces and administers them.",
      "x-kubernetes-validations": [
        {
          rule: `self.kind != 'ServiceAccount' || self.name.matches('${SERVICE_ACCOUNT_NAME}')`,
          message: "a ServiceAccount is named system:serviceaccount:<namespace>:<name>",
        },
      ],
    },
  ),
  namespaceQuota: Type.Optional(
    Type.Integer({
      description: "Maximum number of namespaces; unlimited if absent.",
      minimum: 1,
      format: "int32",
    }),
  ),
  namespacesMetadata: Type.Optional(
    Type.Object(
      {
        ...additionalMetadata,
        forbiddenLabels: denied("Labels that the owner may not set, in addition to reserved ones."),
        forbiddenAnnotations: denied("Annotations that the owner may not set, in addition to reserved ones."),
        allowedLabels: allowed("Labels that the owner may set although they are reserved or forbidden."),
        allowedAnnotations: allowed("Annotations that the owner may set although they are reserved or forbidden."),
      },
      {
        description: "Labels and annotations of each of the tenant's namespaces, and the keys that its owner may set.",
      },
    ),
  ),
  forceTenantPrefix: flag("Whether names of the tenant's namespaces must begin with the tenant's name and a dash."),
  cordoned: flag("Whether creations in the tenant are refused; running workloads continue."),
  servicesMetadata: Type.Optional(
    Type.Object(additionalMetadata, {
      description: "Labels and annotations of the tenant's Services, Endpoints and EndpointSlices.",
    }),
  ),
  ingressHostnames: allowed("The host names that the tenant's Ingresses may have; all if absent."),
  hostnameCollisionScope: Type.Optional(
    Type.Enum(["Cluster", "Tenant", "Namespace", "Disabled"], {
      type: "string",
      description:
        "Where two Ingresses may not have the same host name and path. Disabled also lets two tenants allow the same host name.",
    }),
  ),
  allowedServices: Type.Optional(
    Type.Object(
      {
        nodePort: flag("Services with node ports."),
        externalName: flag("Services of the type ExternalName."),
        loadBalancer: flag("Services of the type LoadBalancer."),
      },
      { description: "Types of Services that the tenant may have; a type is allowed unless it is false." },
    ),
  ),
  imagePullPolicies: Type.Optional(
    Type.Array(Type.Enum(["Always", "IfNotPresent", "Never"], { type: "string" }), {
      description: "The pull policies that containers may have; all if absent.",
      maxItems: 3,
      "x-kubernetes-list-type": "set",
    }),
  ),
  priorityClasses: allowed("The priority classes that the tenant's Pods may have; all if absent."),
  ingressClasses: allowed("The ingress classes that the tenant may use; all if absent."),
  storageClasses: allowed("The storage classes that the tenant may use; all if absent."),
  containerRegistries: allowed("The registries that images may come from; all if absent."),
  externalServiceIPs: Type.Optional(
    Type.Object(
      {
        allowed: Type.Array(
          Type.String({
            maxLength: 64,
            "x-kubernetes-validations": [
              { rule: "isIP(self) || isCIDR(self)", message: "must be an address or a CIDR" },
            ],
          }),
          { maxItems: 100 },
        ),
      },
      {
        description: "The external addresses that Services may have; all if absent, none if empty.",
      },
    ),
  ),
  nodeSelector: Type.Optional(
    stringMap({ description: "Labels of the nodes that the tenant's Pods run on.", maxProperties: 32 }),
  ),
  limitRanges: forEachNamespace(limitRange, "Specs of LimitRanges; each namespace gets one for each item."),
  networkPolicies: forEachNamespace(networkPolicy, "Specs of NetworkPolicies; each namespace gets one for each item."),
  resourceQuotas: forEachNamespace(
    resourceQuota,
    "Quotas for the tenant as a whole; each namespace gets a ResourceQuota with its share of each item.",
  ),
  additionalRoleBindings: forEachNamespace(
    Type.Object({ clusterRoleName: name(), subjects: Type.Array(subject, { minItems: 1, maxItems: 100 }) }),
    "Further RoleBindings; each namespace gets one for each item.",
  ),
});
export type CapsuleTenantSpec = Type.Static<typeof capsuleTenantSpec>;
/** A Tenant, as the API server has checked it. */
export type CapsuleTenant = KindObject<CapsuleTenantSpec>;

export const capsuleTenantStatus = Type.Object({
  size: Type.Integer({ description: "Number of the tenant's namespaces.", format: "int32" }),
  namespaces: Type.Array(Type.String(), {
    description: "The tenant's namespaces.",
    "x-kubernetes-list-type": "set",
  }),
});
export type CapsuleTenantStatus = Type.Static<typeof capsuleTenantStatus>;
