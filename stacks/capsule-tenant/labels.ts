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
