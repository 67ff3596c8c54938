import { hash } from "node:crypto";
import { FIELD_MANAGER } from "./client";
import type { LiveObject, ManagedFieldsEntry } from "./types";

/** On everything that Kindstack applies: the UID of the owning object. Watches select by it. */
export const OWNER_UID_LABEL = "kindstack.dev/owner-uid";
/** The same owner in words, for people and for messages about conflicts. */
export const OWNER_ANNOTATION = "kindstack.dev/owner";
/** On what did not exist before: only this is deleted again. Its absence means that the object was adopted. */
export const CREATED_ANNOTATION = "kindstack.dev/created";

/** The owner of an object. */
export interface Owner {
  /** The UID of a custom resource, or another name that no two owners share. */
  uid: string;
  /** For people: `Tenant.multitenancy.codereliant.io/acme`. */
  description: string;
}

export function ownerUidOf(object: LiveObject): string | undefined {
  return object.metadata.labels?.[OWNER_UID_LABEL];
}

/** Whether Kindstack made this object, as opposed to having found and adopted it. */
export function wasCreated(object: LiveObject): boolean {
  return object.metadata.annotations?.[CREATED_ANNOTATION] === "true";
}

/** Why a live object is refused to these owners with `Conflict`; `undefined` when it is not. */
export function describeConflict(live: LiveObject, owners: readonly string[], adopt: boolean): string | undefined {
  const holder = ownerUidOf(live);
  if (holder === undefined && !adopt) return `${live.kind} ${live.metadata.name} exists already and is not adopted`;
  if (holder === undefined || owners.includes(holder)) return undefined;
  const description = live.metadata.annotations?.[OWNER_ANNOTATION] ?? `the owner with UID ${holder}`;
  return `${live.kind} ${live.metadata.name} belongs to ${description}; remove it there, or remove its label ${OWNER_UID_LABEL}`;
}

/** Whether Kindstack has applied anything of this object, by its managed fields. */
export function wasApplied({ metadata }: LiveObject): boolean {
  return metadata.managedFields?.some(isOwnEntry) ?? false;
}

/**
 * A digest of the fields that Kindstack owns in a live object, by its managed fields.
 *
 * When another client changes or removes a field that Kindstack applied, the server removes it from Kindstack's entry. So the
 * digest changes exactly when an applied field is no longer as it was applied, whatever defaults and other fields there are.
 */
export function ownedFieldsDigest(object: LiveObject): string {
  const { fieldsV1 = {} } = object.metadata.managedFields?.find(isOwnEntry) ?? {};
  return hash("sha256", canonicalJson(fieldsV1)).slice(0, 16);
}

/** Whether an entry of an object's `managedFields` is of what Kindstack applied. */
export function isOwnEntry({ manager, operation, subresource }: ManagedFieldsEntry): boolean {
  return manager === FIELD_MANAGER && operation === "Apply" && !subresource;
}

function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, part) =>
    part !== null && typeof part === "object" && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );
}
