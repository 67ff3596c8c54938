import type { LiveObject } from "../../providers/kubernetes/client";

/**
 * What happened to an object between two states of the cache. `previous` is what the cache held. A deletion that was
 * `reported` came as an event, with the last state of the object; others are concluded from what is there later. A change that
 * was `restored` was found in the first list after a restore of the API server's data.
 */
export type ObjectChange =
  | { type: "added"; object: LiveObject }
  | { type: "modified"; object: LiveObject; previous: LiveObject; restored?: true }
  | { type: "deleted"; object: LiveObject; previous: LiveObject; reported?: true };

/** The states of an object before and after a change, of those that exist. */
export function statesOf(change: ObjectChange): LiveObject[] {
  return change.type === "added" ? [change.object] : [change.previous, change.object];
}

/**
 * Negative when `a` is the older version, 0 when they are the same, positive when it is the newer one. Resource
 * versions of one type are decimal numbers of any length and can be compared as such (so defined since Kubernetes 1.35).
 */
export function compareResourceVersions(a: string, b: string): number {
  if (a.length !== b.length) return a.length - b.length;
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Managed fields are not read, and they are the larger part of a small object. */
export function withoutManagedFields(object: LiveObject): LiveObject {
  const { managedFields: _, ...metadata } = object.metadata;
  return { ...object, metadata };
}
