import { isProtectedNamespace, type LiveObject } from "../../providers/kubernetes/index";
import type { KindObject } from "../contract/index";
import { TENANT_LABEL } from "./labels";

/** The tenants that an object with Capsule's label is for: one, or none if no tenant may have it, whatever its label. */
export function tenantsOf({ metadata: { name, labels } }: LiveObject): string[] {
  const tenant = labels?.[TENANT_LABEL];
  return !tenant || isProtectedNamespace(name) ? [] : [tenant];
}

/**
 * The tenant's namespaces by name: those with its label, and those of its stack that name it as their owner, so that a
 * label that a user removes is restored. Those on their way out are left alone.
 */
export function namespacesOf(
  { metadata: { uid } }: KindObject,
  owned: readonly LiveObject[],
  watched: readonly LiveObject[],
): string[] {
  const kept = owned.filter(
    ({ kind, metadata }) => kind === "Namespace" && metadata.ownerReferences?.some((owner) => owner.uid === uid),
  );
  const names = [...watched, ...kept]
    .filter(({ metadata }) => !metadata.deletionTimestamp && !isProtectedNamespace(metadata.name))
    .map(({ metadata }) => metadata.name);
  return [...new Set(names)].sort();
}

/** Of the objects, the namespaces that are not being deleted. */
export function presentNamespaces(objects: readonly LiveObject[]): LiveObject[] {
  return objects.filter(({ kind, metadata }) => kind === "Namespace" && metadata.deletionTimestamp === undefined);
}
