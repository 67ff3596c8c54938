import type Type from "typebox";

/** The parts of an object that differ between versions of its API. */
export interface Convertible<Spec> {
  spec: Spec;
  /** For what the other version has no field for, so that nothing is lost on the way there and back. */
  annotations: Readonly<Record<string, string>>;
}

/** A column of `kubectl get`; SYNCED, READY, REASON, PAUSED and AGE are added to every kind. */
export interface PrinterColumn {
  name: string;
  type: "string" | "integer" | "number" | "boolean" | "date";
  jsonPath: string;
  /** How a value is shown, as in OpenAPI: `byte`. */
  format?: string;
  description?: string;
  /** Above 0, the column is shown only by `kubectl get -o wide`. */
  priority?: number;
}

/** The paths of the scale subresource (`kubectl scale`, autoscalers), such as `.spec.replicas`. */
export interface ScalePaths {
  specReplicasPath: string;
  statusReplicasPath: string;
  labelSelectorPath?: string;
}

/**
 * A version of a kind's API that is served besides the stored one, which is the kind's own. The status is the same in all
 * versions.
 *
 * Both functions are pure, and take whatever their side's schema allows: the API server calls them for each object of
 * each request in another version than the stored one.
 */
export interface ServedVersion<Stored = unknown, S extends Type.TSchema = Type.TSchema> {
  /** `v1` */
  readonly version: string;
  readonly spec: S;
  /** Shown by kubectl to those who still use the version. */
  readonly deprecationWarning?: string;
  /** As for the stored version, where the paths may be others: an autoscaler may name the object in this version. */
  readonly scale?: ScalePaths;
  /** Default: the kind's columns of the status and the metadata, which are the same in all versions. */
  readonly columns?: readonly PrinterColumn[];
  // To infer the schema from these takes the compiler seconds.
  toStored(object: Convertible<NoInfer<Type.Static<S>>>): Convertible<Stored>;
  fromStored(object: Convertible<Stored>): Convertible<NoInfer<Type.Static<S>>>;
}

/** Declares a served version; the type of its spec follows from the schema. */
export function servedVersion<const S extends Type.TSchema, Stored>(
  definition: ServedVersion<Stored, S>,
): ServedVersion<Stored> {
  return definition;
}
