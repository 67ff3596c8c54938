import Type from "typebox";
import type { KindObject } from "../../contract/index";
import {
  allowed,
  amounts,
  denied,
  flag,
  INT_OR_STRING,
  labelSelector,
  list,
  NAME,
  oneOf,
  optional,
  requirements,
  rule,
  SET,
  stringMap,
  text,
} from "./schema-parts";

/** Where two Ingresses may not have the same host name and path. */
export const COLLISION_SCOPES = ["Cluster", "Tenant", "Namespace", "Disabled"] as const;

const limitRange = Type.Object({
  limits: Type.Array(
    Type.Object({
      type: oneOf(["Pod", "Container", "PersistentVolumeClaim"]),
      max: amounts("Maximum for one."),
      min: amounts("Minimum for one."),
      default: amounts("The limits of a container that names none."),
      defaultRequest: amounts("The requests of a container that names none."),
      maxLimitRequestRatio: amounts("Maximum ratio of limit to request."),
    }),
    { maxItems: 32 },
  ),
});

const CIDR = Type.String({ maxLength: 64, format: "cidr" });

const peers = (description: string) =>
  list(
    Type.Object({
      ipBlock: Type.Optional(Type.Object({ cidr: CIDR, except: list(CIDR, 64) })),
      namespaceSelector: Type.Optional(labelSelector("The namespaces; all if empty.")),
      podSelector: Type.Optional(labelSelector("The Pods; all if empty.")),
    }),
    64,
    { description },
  );

const PORTS = list(
  Type.Object({
    protocol: Type.Optional(oneOf(["TCP", "UDP", "SCTP"])),
    port: Type.Optional(Type.Unsafe<string | number>({ ...INT_OR_STRING, maxLength: 15 })),
    endPort: Type.Optional(Type.Integer({ minimum: 1, maximum: 65535, format: "int32" })),
  }),
  64,
);

const networkPolicy = Type.Object({
  podSelector: labelSelector("The Pods that the policy is for; all if empty."),
  policyTypes: list(oneOf(["Ingress", "Egress"]), 2, SET),
  ingress: list(Type.Object({ from: peers("Who may connect; anyone if there are none."), ports: PORTS }), 32),
  egress: list(Type.Object({ to: peers("What may be connected to; anything if there are none."), ports: PORTS }), 32),
});

const SCOPE = oneOf([
  "Terminating",
  "NotTerminating",
  "BestEffort",
  "NotBestEffort",
  "PriorityClass",
  "CrossNamespacePodAffinity",
  "VolumeAttributesClass",
]);

const resourceQuota = Type.Object({
  hard: amounts("What the tenant may use in all of its namespaces together, by resource."),
  scopes: list(SCOPE, 8, SET),
  scopeSelector: Type.Optional(Type.Object({ matchExpressions: requirements({ scopeName: SCOPE }, 8, 253) })),
});
export type ResourceQuotaItem = Type.Static<typeof resourceQuota>;

const SUBJECT_KIND = oneOf(["User", "Group", "ServiceAccount"]);

const subject = Type.Object({
  kind: SUBJECT_KIND,
  name: NAME,
  apiGroup: Type.Optional(oneOf(["", "rbac.authorization.k8s.io"])),
  namespace: Type.Optional(text(63)),
});

/** Kindstack and the API server rely on these; a tenant that set them could claim an object of another tenant. */
const RESERVED_PREFIXES = ["capsule.clastix.io/", "kindstack.dev/", "kubernetes.io/metadata."];
const UNRESERVED = rule(
  `self.all(key, !(${RESERVED_PREFIXES.map((prefix) => `key.startsWith('${prefix}')`).join(" || ")}))`,
  `${RESERVED_PREFIXES.map((prefix) => `${prefix}*`).join(", ")} are set by Kindstack and by the API server`,
);

export function isReserved(key: string): boolean {
  return RESERVED_PREFIXES.some((prefix) => key.startsWith(prefix));
}

/** How a ServiceAccount is called as a user: `system:serviceaccount:<namespace>:<name>`. */
export const SERVICE_ACCOUNT_NAME = "^system:serviceaccount:[^:]+:[^:]+$";

const forEachNamespace = <Item extends Type.TSchema>(item: Item, description: string) =>
  list(item, 32, { description });
const additionalMetadata = { additionalLabels: stringMap(UNRESERVED), additionalAnnotations: stringMap(UNRESERVED) };

export const capsuleTenantSpec = Type.Object({
  owner: Type.Object(
    { kind: SUBJECT_KIND, name: NAME },
    {
      description: "Who creates the tenant's namespaces and administers them.",
      ...rule(
        `self.kind != 'ServiceAccount' || self.name.matches('${SERVICE_ACCOUNT_NAME}')`,
        "a ServiceAccount is named system:serviceaccount:<namespace>:<name>",
      ),
    },
  ),
  namespaceQuota: Type.Optional(
    Type.Integer({ description: "Maximum number of namespaces; unlimited if absent.", minimum: 1, format: "int32" }),
  ),
  namespacesMetadata: optional(
    {
      ...additionalMetadata,
      forbiddenLabels: denied("Labels that the owner may not set, in addition to reserved ones."),
      forbiddenAnnotations: denied("Annotations that the owner may not set, in addition to reserved ones."),
      allowedLabels: allowed("Labels that the owner may set although they are reserved or forbidden."),
      allowedAnnotations: allowed("Annotations that the owner may set although they are reserved or forbidden."),
    },
    "Labels and annotations of each of the tenant's namespaces, and the keys that its owner may set.",
  ),
  forceTenantPrefix: flag("Whether names of the tenant's namespaces must begin with the tenant's name and a dash."),
  cordoned: flag("Whether creations in the tenant are refused; running workloads continue."),
  servicesMetadata: optional(
    additionalMetadata,
    "Labels and annotations of the tenant's Services, Endpoints and EndpointSlices.",
  ),
  ingressHostnames: allowed("The host names that the tenant's Ingresses may have; all if absent."),
  hostnameCollisionScope: Type.Optional(
    oneOf(
      COLLISION_SCOPES,
      "Where two Ingresses may not have the same host name and path. Disabled also lets two tenants allow the same host name.",
    ),
  ),
  allowedServices: optional(
    {
      nodePort: flag("Services with node ports."),
      externalName: flag("Services of the type ExternalName."),
      loadBalancer: flag("Services of the type LoadBalancer."),
    },
    "Types of Services that the tenant may have; a type is allowed unless it is false.",
  ),
  imagePullPolicies: list(oneOf(["Always", "IfNotPresent", "Never"]), 3, {
    description: "The pull policies that containers may have; all if absent.",
    ...SET,
  }),
  priorityClasses: allowed("The priority classes that the tenant's Pods may have; all if absent."),
  ingressClasses: allowed("The ingress classes that the tenant may use; all if absent."),
  storageClasses: allowed("The storage classes that the tenant may use; all if absent."),
  containerRegistries: allowed("The registries that images may come from; all if absent."),
  externalServiceIPs: optional(
    {
      allowed: Type.Array(
        Type.String({ maxLength: 64, ...rule("isIP(self) || isCIDR(self)", "must be an address or a CIDR") }),
        { maxItems: 100 },
      ),
    },
    "The external addresses that Services may have; all if absent, none if empty.",
  ),
  nodeSelector: stringMap({ description: "Labels of the nodes that the tenant's Pods run on.", maxProperties: 32 }),
  limitRanges: forEachNamespace(limitRange, "Specs of LimitRanges; each namespace gets one for each item."),
  networkPolicies: forEachNamespace(networkPolicy, "Specs of NetworkPolicies; each namespace gets one for each item."),
  resourceQuotas: forEachNamespace(
    resourceQuota,
    "Quotas for the tenant as a whole; each namespace gets a ResourceQuota with its share of each item.",
  ),
  additionalRoleBindings: forEachNamespace(
    Type.Object({ clusterRoleName: NAME, subjects: Type.Array(subject, { minItems: 1, maxItems: 100 }) }),
    "Further RoleBindings; each namespace gets one for each item.",
  ),
});
export type CapsuleTenantSpec = Type.Static<typeof capsuleTenantSpec>;
/** A Tenant, as the API server has checked it. */
export type CapsuleTenant = KindObject<CapsuleTenantSpec>;

export const capsuleTenantStatus = Type.Object({
  size: Type.Integer({ description: "Number of the tenant's namespaces.", format: "int32" }),
  namespaces: Type.Array(Type.String(), { description: "The tenant's namespaces.", ...SET }),
});
export type CapsuleTenantStatus = Type.Static<typeof capsuleTenantStatus>;
