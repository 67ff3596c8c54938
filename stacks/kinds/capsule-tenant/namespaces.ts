import {
  isProtectedNamespace,
  type LiveObject,
  OWNER_UID_LABEL,
  termination,
} from "../../../providers/kubernetes/index";
import type { KindObject } from "../../contract/index";
import { indexedName, ROLE_BINDING_LABEL, TENANT_LABEL } from "./labels";
import type { CapsuleTenant } from "./schema";

/** The tenants that an object with Capsule's label is for: one, or none if no tenant may have it, whatever its label. */
export function tenantsOf({ metadata: { name, labels } }: LiveObject): string[] {
  const tenant = labels?.[TENANT_LABEL];
  return !tenant || isProtectedNamespace(name) ? [] : [tenant];
}

/**
 * The tenant's namespaces by name: namespaces with the tenant's label, and with the label of its stack, so that a removed
 * tenant label is restored. Namespaces that are being released or deleted are left alone.
 */
export function namespacesOf(
  { metadata: { uid } }: KindObject,
  owned: readonly LiveObject[],
  watched: readonly LiveObject[],
): string[] {
  const kept = owned.filter(({ kind, metadata }) => kind === "Namespace" && metadata.labels?.[OWNER_UID_LABEL] === uid);
  const names = [...watched, ...kept]
    .filter(({ metadata }) => !metadata.deletionTimestamp && !isProtectedNamespace(metadata.name))
    .map(({ metadata }) => metadata.name);
  return [...new Set(names)].sort();
}

/**
 * The objects that Kindstack has created for a tenant, by namespace and reserved name. Users may write the tenant's marks on
 * other objects.
 */
export function madeInNamespaces({ metadata: { name, uid } }: KindObject, marked: readonly LiveObject[]): LiveObject[] {
  const namespaces = new Set(
    marked.flatMap(({ kind, metadata }) =>
      kind === "Namespace" && (metadata.labels?.[TENANT_LABEL] === name || metadata.labels?.[OWNER_UID_LABEL] === uid)
        ? [metadata.name]
        : [],
    ),
  );
  const isMade = (own: string) => own === indexedName(name, Number(/-(\d+)$/.exec(own)?.[1]));
  return marked.filter(({ metadata: { namespace = "", name: own } }) => namespaces.has(namespace) && isMade(own));
}

/**
 * The namespaces that count in the tenant's quota and in its status. One that is being deleted counts until it is gone: finalizers
 * give no one more than the quota.
 */
export function countedNamespaces(tenant: string, objects: readonly LiveObject[]): LiveObject[] {
  return objects.filter(
    (object) =>
      object.kind === "Namespace" && object.metadata.labels?.[TENANT_LABEL] === tenant && tenantsOf(object).length > 0,
  );
}

const MAX_NAMED = 5;

/** What is being deleted of the namespaces, with what holds it, in words; empty when nothing is. */
export function endingIn(namespaces: readonly LiveObject[]): string {
  const ending = namespaces.filter(({ metadata }) => metadata.deletionTimestamp !== undefined);
  const named = ending.slice(0, MAX_NAMED).map((namespace) => termination(namespace));
  return [...named, ...(ending.length > MAX_NAMED ? [`${ending.length - MAX_NAMED} more are being deleted`] : [])].join(
    ". ",
  );
}

export function presentNamespaces(objects: readonly LiveObject[]): LiveObject[] {
  return objects.filter(({ kind, metadata }) => kind === "Namespace" && metadata.deletionTimestamp === undefined);
}

/**
 * The namespaces beyond the tenant's quota that came together with others, before any cache showed these: the youngest of
 * those without rights. Their owner gets none in them. Namespaces with rights keep them when the quota is lowered.
 */
export function surplusNamespaces(
  { spec: { namespaceQuota = Number.POSITIVE_INFINITY } }: CapsuleTenant,
  objects: readonly LiveObject[],
): Set<string> {
  const namespaces = new Map(
    objects.filter(({ kind }) => kind === "Namespace").map((namespace) => [namespace.metadata.name, namespace]),
  );
  if (namespaces.size <= namespaceQuota) return new Set(); // asked for each of many namespaces
  const waiting = [...namespaces.values()].filter(({ metadata }) => !hasRights(metadata.name, objects));
  const room = Math.max(0, namespaceQuota - (namespaces.size - waiting.length));
  const surplus = waiting.sort((a, b) => (isOlder(a, b) ? -1 : 1)).slice(room);
  return new Set(surplus.map(({ metadata }) => metadata.name));
}

export function hasRights(namespace: string, owned: readonly LiveObject[]): boolean {
  return owned.some(
    ({ kind, metadata }) =>
      kind === "RoleBinding" &&
      metadata.namespace === namespace &&
      metadata.labels?.[ROLE_BINDING_LABEL] !== undefined &&
      metadata.deletionTimestamp === undefined,
  );
}

/** Which of two objects came first; of two that came within a second, all agree on one. */
export function isOlder({ metadata: one }: LiveObject, { metadata: other }: LiveObject): boolean {
  const [a = "", b = ""] = [one.creationTimestamp, other.creationTimestamp];
  return a === b ? one.uid < other.uid : a < b;
}
