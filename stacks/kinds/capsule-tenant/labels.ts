/** On each of a tenant's namespaces, and on everything that Kindstack makes in them: the tenant's name. */
export const TENANT_LABEL = "capsule.clastix.io/tenant";
/** On what is made of an item of one of the tenant's lists: the item's index. */
export const RESOURCE_QUOTA_LABEL = "capsule.clastix.io/resource-quota";
export const ROLE_BINDING_LABEL = "capsule.clastix.io/role-binding";

/** On each of a tenant's namespaces: where its Pods may run, as the admission plugin PodNodeSelector reads it. */
export const NODE_SELECTOR_ANNOTATION = "scheduler.alpha.kubernetes.io/node-selector";

/** On a namespace whose tenant has `servicesMetadata`; the webhook is asked about no other. */
export const SERVICES_METADATA_LABEL = "kindstack.dev/services-metadata";
/** On a namespace whose tenant has a scope of host name collisions; the webhook is asked about no other. */
export const HOSTNAME_COLLISION_LABEL = "kindstack.dev/hostname-collision";
/** On a namespace whose tenant has `resourceQuotas`: what they count; the webhooks that make room are asked about no other. */
export const QUOTAS_LABEL = "kindstack.dev/resource-quotas";

/** The group whose members make namespaces through their tenants, unless the operator is told another. */
export const DEFAULT_USER_GROUP = "capsule.clastix.io";
/** The field manager of what a ResourceQuota allows; the rest of it is applied with the stack. */
export const QUOTA_MANAGER = "kindstack-quota";
/** The ClusterRole that lets a tenant's owner delete a namespace in which it is bound. */
export const NAMESPACE_DELETER = "capsule-namespace-deleter";

/** A variable of the environment: with `true`, the younger of two objects that came at once where one is allowed is deleted. */
export const DELETE_YOUNGER = "KINDSTACK_CAPSULE_DELETE_YOUNGER";

/** The object that Kindstack makes in each namespace of an item of the tenant's lists: `capsule-oil-0`. */
export function indexedName(tenant: string, index: number): string {
  return `capsule-${tenant}-${index}`;
}
