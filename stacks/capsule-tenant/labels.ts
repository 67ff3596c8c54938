/** On each of a tenant's namespaces, and on everything that Kindstack makes in them: the tenant's name. */
export const TENANT_LABEL = "capsule.clastix.io/tenant";
/** On what is made of an item of one of the tenant's lists: the item's index. */
export const LIMIT_RANGE_LABEL = "capsule.clastix.io/limit-range";
export const NETWORK_POLICY_LABEL = "capsule.clastix.io/network-policy";
export const RESOURCE_QUOTA_LABEL = "capsule.clastix.io/resource-quota";
export const ROLE_BINDING_LABEL = "capsule.clastix.io/role-binding";

/** On each of a tenant's namespaces: where its Pods may run, as the admission plugin PodNodeSelector reads it. */
export const NODE_SELECTOR_ANNOTATION = "scheduler.alpha.kubernetes.io/node-selector";
/** On each of a tenant's namespaces, for its owner to read: what the tenant may use. */
export const INGRESS_CLASSES_ANNOTATION = "capsule.clastix.io/ingress-classes";
export const INGRESS_CLASSES_REGEXP_ANNOTATION = "capsule.clastix.io/ingress-classes-regexp";
export const STORAGE_CLASSES_ANNOTATION = "capsule.clastix.io/storage-classes";
export const STORAGE_CLASSES_REGEXP_ANNOTATION = "capsule.clastix.io/storage-classes-regexp";
export const REGISTRIES_ANNOTATION = "capsule.clastix.io/allowed-registries";
export const REGISTRIES_REGEXP_ANNOTATION = "capsule.clastix.io/allowed-registries-regexp";

/*
 * On a Tenant: what Capsule takes from annotations and a label. The specification has a field for each, which wins.
 */
export const IMAGE_PULL_POLICIES_ANNOTATION = "capsule.clastix.io/allowed-image-pull-policy";
export const PRIORITY_CLASSES_ANNOTATION = "priorityclass.capsule.clastix.io/allowed";
export const PRIORITY_CLASSES_REGEX_ANNOTATION = "priorityclass.capsule.clastix.io/allowed-regex";
export const NODE_PORTS_ANNOTATION = "capsule.clastix.io/enable-node-ports";
export const EXTERNAL_NAME_ANNOTATION = "capsule.clastix.io/enable-external-name";
export const LOAD_BALANCER_ANNOTATION = "capsule.clastix.io/enable-loadbalancer-service";
export const HOSTNAME_COLLISION_ANNOTATION = "ingress.capsule.clastix.io/hostname-collision-scope";
export const FORBIDDEN_LABELS_ANNOTATION = "capsule.clastix.io/forbidden-namespace-labels";
export const FORBIDDEN_LABELS_REGEX_ANNOTATION = "capsule.clastix.io/forbidden-namespace-labels-regexp";
export const FORBIDDEN_ANNOTATIONS_ANNOTATION = "capsule.clastix.io/forbidden-namespace-annotations";
export const FORBIDDEN_ANNOTATIONS_REGEX_ANNOTATION = "capsule.clastix.io/forbidden-namespace-annotations-regexp";
/** With the value `enabled`: the tenant is cordoned. */
export const CORDON_LABEL = "capsule.clastix.io/cordon";

/** On a request that asks whether a tenant's policy is enforced; it is never stored. */
export const PROBE_ANNOTATION = "kindstack.dev/enforcement-probe";
/** On a namespace: the UID of the tenant whose policy the API server has been seen to enforce in it. */
export const ENFORCED_ANNOTATION = "kindstack.dev/enforced-tenant";
/** On a namespace whose tenant has `servicesMetadata`; the webhook is asked about no other. */
export const SERVICES_METADATA_LABEL = "kindstack.dev/services-metadata";
/** On a namespace whose tenant has a scope of host name collisions; the webhook is asked about no other. */
export const HOSTNAME_COLLISION_LABEL = "kindstack.dev/hostname-collision";
/** On a namespace whose tenant has `resourceQuotas`: what they count; the webhooks that make room are asked about no other. */
export const QUOTAS_LABEL = "kindstack.dev/resource-quotas";
/** On a ResourceQuota, and then the process that asks: what requests that wait need. */
export const ASK_ANNOTATION_PREFIX = "ask.kindstack.dev/";
/** The field manager of {@link ENFORCED_ANNOTATION}. */
export const ENFORCEMENT_MANAGER = "kindstack-enforcement";

/** The group whose members make namespaces through their tenants, unless the operator is told another. */
export const DEFAULT_USER_GROUP = "capsule.clastix.io";
/** The field manager of what a ResourceQuota allows; the rest of it is applied with the stack. */
export const QUOTA_MANAGER = "kindstack-quota";
/** The ClusterRole that lets a tenant's owner delete a namespace in which it is bound. */
export const NAMESPACE_DELETER = "capsule-namespace-deleter";

/** On a ResourceQuota: what the tenant's namespaces use of a resource together. */
export function usedAnnotation(resource: string): string {
  return quotaAnnotation("used", resource);
}

/** On a ResourceQuota: what the tenant as a whole may use of a resource. */
export function hardAnnotation(resource: string): string {
  return quotaAnnotation("hard", resource);
}

/** A resource's name may have a slash in it (`count/deployments.apps`); the name of an annotation may not. */
function quotaAnnotation(what: "used" | "hard", resource: string): string {
  return `quota.capsule.clastix.io/${what}-${resource.replaceAll("/", "_")}`.slice(0, MAX_ANNOTATION_LENGTH);
}

const MAX_ANNOTATION_LENGTH = "quota.capsule.clastix.io/".length + 63;

/** The object that Kindstack makes in each namespace of an item of the tenant's lists: `capsule-oil-0`. */
export function indexedName(tenant: string, index: number): string {
  return `capsule-${tenant}-${index}`;
}
