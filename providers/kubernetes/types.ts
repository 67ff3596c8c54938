/** Who owns an object, as Kubernetes' garbage collector reads it. */
export interface OwnerReference {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller?: boolean;
  blockOwnerDeletion?: boolean;
}

/** One field manager's record of the fields that it owns. */
export interface ManagedFieldsEntry {
  manager?: string;
  operation?: string;
  subresource?: string;
  fieldsV1?: Record<string, unknown>;
}

/** The metadata of an object, as far as Kindstack reads it. */
export interface ObjectMeta {
  name?: string;
  generateName?: string;
  namespace?: string;
  uid?: string;
  resourceVersion?: string;
  generation?: number;
  creationTimestamp?: string;
  deletionTimestamp?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  finalizers?: string[];
  ownerReferences?: OwnerReference[];
  managedFields?: ManagedFieldsEntry[];
}

/** What is written to the API server. */
export interface Manifest {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  [field: string]: unknown;
}

/** What the API server returned: it has a name, a UID and a version. */
export interface LiveObject extends Manifest {
  metadata: ObjectMeta & { name: string; uid: string; resourceVersion: string };
}

/** A type of Kubernetes objects. */
export interface ObjectType {
  apiVersion: string;
  kind: string;
}

export interface ResourceType extends ObjectType {
  plural: string;
  namespaced: boolean;
}

/**
 * What the API server tells of an object. An object that is not seen need not be absent: its type may not be served in the
 * version asked for, the request may have failed, or be forbidden.
 */
export type Lookup =
  | { readonly outcome: "found"; readonly object: LiveObject }
  | { readonly outcome: "absent" }
  | { readonly outcome: "unknown"; readonly error: unknown };

/** The object of a look-up; `undefined` only when its absence is certain. @throws the error, where that is unknown */
export async function known(asked: Lookup | Promise<Lookup>): Promise<LiveObject | undefined> {
  const lookup = await asked;
  switch (lookup.outcome) {
    case "found":
      return lookup.object;
    case "absent":
      return undefined;
    case "unknown":
      throw lookup.error;
  }
}
