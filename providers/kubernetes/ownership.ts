import { createHash } from "node:crypto";
import { FIELD_MANAGER, type LiveObject } from "./client";

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

/** Whether Kindstack has applied anything of this object, by the API server's own books. */
export function wasApplied(object: LiveObject): boolean {
  return ownEntry(object) !== undefined;
}

/**
 * A digest of the fields that Kindstack owns in a live object, by the API server's own books.
 *
 * When anyone else changes or removes a field that Kindstack applied, the server takes that field from Kindstack's
 * entry in `managedFields`; so the digest changes exactly when an applied field is no longer as it was applied, whatever
 * defaults the server filled in and whatever others added. No copy of the wanted manifest is needed to see drift.
 */
export function ownedFieldsDigest(object: LiveObject): string {
  const entry = ownEntry(object);
  return createHash("sha256")
    .update(canonicalJson(entry?.fieldsV1 ?? {}))
    .digest("hex")
    .slice(0, 16);
}

function ownEntry({ metadata }: LiveObject) {
  return metadata.managedFields?.find(
    ({ manager, operation, subresource }) => manager === FIELD_MANAGER && operation === "Apply" && !subresource,
  );
}

function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, part) =>
    part !== null && typeof part === "object" && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );
}
