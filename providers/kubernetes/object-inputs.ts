import type { FieldDrift } from "../provider";
import type { Owner } from "./ownership";
import type { Manifest, OwnerReference } from "./types";

/** What a program gives for one Kubernetes object. */
export interface ObjectInputs {
  /** The fields to be applied; everything else in the live object is left to others. */
  manifest: Manifest;
  /** For whom the object is; another owner's object is refused. */
  owner: Owner;
  /**
   * How an existing unmanaged object is treated: it is adopted, or with `false` refused. With `"replace"` it is deleted,
   * whatever its finalizers, so that none of its fields stay. Not for what holds data, such as a namespace.
   */
  adopt?: boolean | "replace";
  /**
   * Fields of the manifest, such as `spec.selector`, or `*` for all: with a change of one, the object is deleted and made again.
   * Without, the API server refuses a change of a field that it lets no one change. Not for what holds data, such as a namespace.
   */
  replaceOnChanges?: readonly string[];
  /**
   * `true` never creates the object, and leaves one that is on its way out alone. It is released and not deleted, unless
   * {@link deletedWith} says otherwise.
   */
  existing?: boolean;
  /**
   * With `existing`: a label of the manifest. Users give the object to its owner with it. An object with neither this label
   * nor that of its owner was released, and is left as it is.
   */
  givenBy?: string;
  /**
   * The stack's object, where this object ends with it. When the stack's object is deleted, an `existing` object is deleted as
   * well, and limits of a namespace stay until the namespace is gone.
   */
  deletedWith?: OwnerReference;
  /** Initial values of fields that another field manager owns after the creation. */
  initial?: { manifest: Manifest; fieldManager: string };
  /** With `false`, a deletion is done as soon as the API server has accepted it. */
  awaitDeletion?: boolean;
}

/** What the state records of one Kubernetes object. */
export interface ObjectOutputs extends ObjectInputs {
  uid: string;
  /** The version after the last apply; an object that a watch shows with a lower one is older than the apply. */
  resourceVersion: string;
  /** `false` for an object that existed before: it is released, not deleted. */
  created: boolean;
  /** See {@link ownedFieldsDigest}; empty while `drift` is not, so that the object counts as drifted. */
  fields: string;
  /** What is not as it was applied: by a refresh, or at once, as admission has changed it. Absent when nothing is. */
  drift?: FieldDrift[];
  /** Set by a refresh that found applied fields changed. */
  drifted: boolean;
}
