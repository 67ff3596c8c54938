import type Type from "typebox";
import { Compile } from "typebox/compile";
import type { TLocalizedValidationError } from "typebox/error";
import { Pointer } from "typebox/value";
import type { DefinedProvider } from "../../providers/dynamic";
import { type ClassifiedError, TerminalError } from "../../providers/errors";
import type { LiveObject, Manifest, ObjectType } from "../../providers/kubernetes/client";
import type { Owner } from "../../providers/kubernetes/ownership";
import type { Properties } from "../../providers/provider";
import type { KindAdmission } from "./admission";
import type { NewCondition } from "./condition";
import type { NamespaceView } from "./namespace-view";
import type { CommonStatus, KindObject } from "./object";
import type { PolicyRule } from "./policy-rule";
import type { ServedVersion } from "./served-version";

/** A column of `kubectl get`; READY, REASON, PAUSED and AGE are added to every kind. */
export interface PrinterColumn {
  name: string;
  type: "string" | "integer" | "date" | "boolean";
  jsonPath: string;
}

/** What a program may know besides its object. */
export interface ProgramContext {
  /** Written on everything that the program makes, so that it can be found and is not taken by someone else. */
  owner: Owner;
  /** The cluster that the object is in ({@link clusterUid}), if it is known. */
  cluster?: string;
  /** The live objects of the types in {@link LiveState.reads} that carry this owner. */
  owned: readonly LiveObject[];
  /** The ids ({@link objectId}) of those that the last update recorded in the stack. */
  recorded: ReadonlySet<string>;
  /** The live objects of {@link Capabilities.watches} that are for this object. */
  watched: readonly LiveObject[];
  /**
   * What the operator's caches show of all that the object owns; absent outside of the operator. They may be behind: good
   * for the order in which things are done, not for whether.
   */
  cached?: readonly LiveObject[];
}

/** Objects that others make, and that have to do with an object of the kind. */
export interface Watch extends ObjectType {
  /** Only what it selects is watched. */
  labelSelector: string;
  /** Selects what is for the object of this key, and perhaps more. */
  selectorOf(key: string): string;
  /** The keys of the kind's objects that one of these is for; that one appears, goes or changes leads to them. */
  keysOf(object: LiveObject): string[];
}

/** What a kind has at hand to maintain an object; see {@link Capabilities.maintain}. */
export interface Maintenance {
  /** The live objects of the types in {@link Kind.owns}, not older than what `apply` returned last. */
  owned: readonly LiveObject[];
  /** Server-side apply of fields that are no part of the stack, for which they need a field manager of their own. */
  apply(manifest: Manifest, fieldManager: string): Promise<void>;
  /** A dry run of a server-side apply. @returns the refusal's message; `undefined` when it would be accepted */
  tryOut(manifest: Manifest): Promise<string | undefined>;
}

/** A rule over the whole object, in CEL, that the API server enforces. */
export interface ValidationRule {
  rule: string;
  message: string;
}

/** How an object stands when its conditions are made up. */
export interface Activity {
  /** Why the last update, or the destroy, failed; undefined when it did not, or when it is running for the first time. */
  failure?: string;
}

/** What {@link ExternalResources.findDrift} found. */
export interface DriftReport {
  /** The UIDs of the objects that have drifted. */
  drifted: readonly string[];
  /** Why objects could not be compared, by UID. */
  unknown: ReadonlyMap<string, ClassifiedError>;
}

/** A condition of the kind's own; the generation is added. */
export type KindCondition = Omit<NewCondition, "observedGeneration">;

/** For programs that depend on what is alive, such as on which Pods are ready. */
export interface LiveState<Spec, Status> {
  /**
   * Those of {@link Kind.owns} that the program depends on. Since it takes what it does not see for gone, it is shown
   * these, and what the kind watches, as the API server has them: caches may be behind.
   */
  readonly reads: readonly ObjectType[];
  /**
   * What of it calls for an update though no field has drifted, such as one Pod too few. A name for each thing, in words;
   * empty when all is as it should be. Pure.
   */
  needsReconcile(
    object: KindObject<Spec, Status>,
    owned: readonly LiveObject[],
    watched: readonly LiveObject[],
  ): string[];
  /**
   * Of that, what completed by itself. It is replaced at once the first time, and later each time that it happens again:
   * its replacement may complete as well. While it waits for that and something else is replaced, the kind is shown it
   * without a status, as it began. Pure.
   */
  completed?(owned: readonly LiveObject[]): string[];
}

/** For what at most one object may hold, such as a namespace. */
export interface ExclusiveClaims<Spec, Status> {
  /**
   * Ids ({@link objectId}) of what the object claims. An object that claims what another one holds gets a condition and is
   * not updated at all until that one releases it, unless the kind can {@link withhold}.
   */
  of(object: KindObject<Spec, Status>, watched: readonly LiveObject[]): string[];
  /**
   * The object without what it claims and another one holds. An object that has been updated once is then updated with the
   * rest: rights that it takes away must not stay because of something that it cannot have. Pure.
   */
  withhold?(object: KindObject<Spec, Status>, ids: ReadonlySet<string>): KindObject<Spec, Status>;
}

/** For resources that nothing in the cluster watches, such as rows. */
export interface ExternalResources<Spec, Status> {
  /**
   * Which of these objects (all Ready) have drifted. Called periodically with all objects of the kind, so that one query
   * can answer for many.
   *
   * @throws when nothing can be asked at all
   */
  findDrift(objects: readonly KindObject<Spec, Status>[]): Promise<DriftReport>;
  /**
   * Removes all that was ever made for this owner, except what these outputs of resources are of. Called after an update,
   * or a destroy, that follows an update that was cut off: what that one has made may be in no state, which is saved once,
   * at the end of an update.
   *
   * @param options with `release`, it is left as it is, unmanaged
   */
  removeOrphans(owner: Owner, kept: readonly Properties[], options: { release: boolean }): Promise<void>;
  /**
   * Tells other clusters that share the system of the resources that this one lives. Called once a minute while there are
   * objects of the kind.
   *
   * @param cluster its UID
   */
  heartbeat?(cluster: string): Promise<void>;
}

/** What only some kinds need. */
export interface Capabilities<Spec = unknown, Status = unknown> {
  /** Rules over more than the spec, such as the name. */
  readonly rules?: readonly ValidationRule[];
  /** Paths of the scale subresource (`kubectl scale`, autoscalers). */
  readonly scale?: { specReplicasPath: string; statusReplicasPath: string; labelSelectorPath: string };
  /** Rights that the operator needs for this kind besides those on the kind itself and on what it owns. */
  readonly permissions?: readonly PolicyRule[];
  /** What the program takes from the operator's environment; when it changes, all objects are updated. */
  settings?(): unknown;
  /** The environment variables that only this kind reads, with their meaning for `kindstack run --help`. */
  readonly environment?: Readonly<Record<string, string>>;
  /**
   * The objects of a namespace share a few stacks, as components, and what waits for a stack is one update. Every resource
   * is then named by its object's key, or by that with a slash and more. Without, each object has a stack of its own.
   */
  readonly sharedStacks?: true;
  /**
   * The program runs in the Pulumi SDK's own runtime, with all that the SDK has: outputs as inputs, secrets, components,
   * resources of plugins, providers with a configuration. Without, programs give their resources plain values, which
   * takes a third of the time. It excludes {@link sharedStacks}.
   */
  readonly sdkRuntime?: true;
  /** Dynamic providers of the kind's own; see {@link defineProvider}. */
  readonly providers?: readonly DefinedProvider[];
  /** Versions of the API that are served besides {@link KindNames.version}, which is stored; needs admission to be served. */
  readonly versions?: readonly ServedVersion<Spec>[];
  /** Objects that others make and that the program needs to know of; they are watched and indexed. */
  readonly watches?: readonly Watch[];
  readonly liveState?: LiveState<Spec, Status>;
  readonly claims?: ExclusiveClaims<Spec, Status>;
  readonly external?: ExternalResources<Spec, Status>;
  /** Conditions besides the standard ones. Pure. */
  conditions?(object: KindObject<Spec, Status>, owned: readonly LiveObject[], activity: Activity): KindCondition[];
  /**
   * What follows each change of what the object owns and needs no update: fields that are no part of the stack. Runs
   * with each reconcile, a few times a second at most, and must do nothing when nothing is to be done.
   *
   * @returns when to look again, where no event will lead to it
   */
  maintain?(
    object: KindObject<Spec, Status>,
    maintenance: Maintenance,
  ): Promise<{ requeueAfterMs: number } | undefined>;
  /** What the kind has a say in when others ask the API server for something. */
  readonly admission?: KindAdmission;
  /** The namespaces that an object's owners may list. */
  readonly namespaceView?: NamespaceView;
}

/** How a kind is called. */
export interface KindNames {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly singular: string;
  readonly shortNames?: readonly string[];
}

/**
 * A kind: one folder under `stacks/`, and everything that the operator, the command line and the CRD know of it.
 *
 * The schemas are TypeBox schemas: the same value is the CRD's structural OpenAPI schema and the TypeScript type.
 */
export interface Kind<Spec = unknown, Status = unknown> extends KindNames {
  readonly scope: "Cluster" | "Namespaced";
  readonly description: string;
  /** `x-kubernetes-validations` and defaults in the schema are enforced by the API server. */
  readonly spec: Type.TSchema;
  /** The kind's own fields; conditions and the like are added to every kind. */
  readonly status: Type.TObject;
  readonly columns: readonly PrinterColumn[];
  /** The types of Kubernetes objects that the program makes; they are watched for drift. */
  readonly owns: readonly ObjectType[];
  /** The kind's folder, `__dirname`: its code is what the program's digest is made of, `sample.yaml` lies in it. */
  readonly directory: string;
  /** Rules that no schema can say. @throws TerminalError naming the field, its value and what is allowed */
  validate?(object: KindObject<Spec, Status>): void;
  /** Registers the object's resources; runs as a Pulumi program. */
  program(object: KindObject<Spec, Status>, context: ProgramContext): void | Promise<void>;
  /** The kind's own status fields, of the object and of the live objects that it owns. Pure. */
  report(object: KindObject<Spec, Status>, owned: readonly LiveObject[]): Status;
  readonly capabilities: Capabilities<Spec, Status>;
}

/** What a schema says, and nothing else: to infer the schema from its uses takes the compiler seconds. */
type StaticOnly<S extends Type.TSchema> = NoInfer<Type.Static<S>>;

type Definition<S extends Type.TSchema, T extends Type.TObject> = Omit<
  Kind<StaticOnly<S>, StaticOnly<T>>,
  "spec" | "status" | "capabilities"
> & { readonly spec: S; readonly status: T; readonly capabilities?: Capabilities<StaticOnly<S>, StaticOnly<T>> };

/** Declares a kind; the types of spec and status follow from the schemas. */
export function defineKind<const S extends Type.TSchema, const T extends Type.TObject>(
  definition: Definition<S, T>,
): Kind<StaticOnly<S>, StaticOnly<T>> {
  const { sdkRuntime, sharedStacks } = definition.capabilities ?? {};
  if (sdkRuntime && sharedStacks)
    throw new TypeError(`${definition.kind}: sdkRuntime and sharedStacks exclude each other`);
  return { capabilities: {}, ...definition } as Kind<StaticOnly<S>, StaticOnly<T>>;
}

/** Any kind, as the watcher handles it: it never looks into a spec. */
// biome-ignore lint/suspicious/noExplicitAny: the boundary between the kinds' own types and code that serves all kinds
export type AnyKind = Kind<any, any>;

export function kindApiVersion(kind: AnyKind): string {
  return `${kind.group}/${kind.version}`;
}

/** The type of a kind's objects, in the stored version. */
export function kindType(kind: AnyKind): ObjectType {
  return { apiVersion: kindApiVersion(kind), kind: kind.kind };
}

/** `tenants.multitenancy.codereliant.io`: the name of a kind, unique in a cluster. */
export function kindName(kind: AnyKind): string {
  return `${kind.plural}.${kind.group}`;
}

/** The object's name in the labels of its resources; the same for every user of its stack. */
export function ownerDescription(kind: AnyKind, key: string): string {
  return `${kind.kind}.${kind.group}/${key}`;
}

/**
 * Whether all that an update makes is found again when the update is killed before its state is saved: what the kind
 * {@link Kind.owns} by its owner's mark, the rest by {@link ExternalResources.removeOrphans}. Of other resources, such as
 * those of plugins, nothing would lead to one whose name is no longer wanted.
 */
export function findsWhatWasCutOff({ owns, capabilities: { sdkRuntime, providers, external } }: AnyKind): boolean {
  if (sdkRuntime !== undefined) return false;
  return external !== undefined || (providers === undefined && owns.length > 0);
}

const validators = new WeakMap<AnyKind, ReturnType<typeof Compile>>();

/**
 * Parses what came from the API server or a file. The API server has validated against the CRD that is installed;
 * that may be an older one, and `pulumi up` reads files.
 *
 * @throws TerminalError naming the field, its value and what is allowed
 */
export function parseObject<Spec, Status>(kind: Kind<Spec, Status>, object: LiveObject): KindObject<Spec, Status> {
  let validator = validators.get(kind);
  if (validator === undefined) {
    validator = Compile(kind.spec);
    validators.set(kind, validator);
  }
  const spec = object.spec;
  const [error] = validator.Errors(spec);
  if (error !== undefined) throw new TerminalError("Invalid", describeError(error, spec, "spec"));
  const parsed = object as unknown as KindObject<Spec, Status>;
  kind.validate?.(parsed);
  return parsed;
}

/** `spec.age: -1 must be >= 0`, of what a schema refuses. @param root the path of the validated value */
export function describeError(error: TLocalizedValidationError, validated: unknown, ...root: string[]): string {
  let { instancePath: pointer, message: allowed } = error;
  if (error.keyword === "required") {
    pointer += `/${error.params.requiredProperties[0]}`;
    allowed = "must be given";
  } else if (error.keyword === "enum") {
    allowed = `must be one of ${error.params.allowedValues.map((value) => JSON.stringify(value)).join(", ")}`;
  }
  const path = [...root, ...Pointer.Indices(pointer)].join(".");
  return `${path}: ${JSON.stringify(Pointer.Get(validated, pointer))?.slice(0, 200) ?? "missing,"} ${allowed}`;
}

/** The status of an object as an untyped record; empty when it has none yet. */
export function statusOf(object: LiveObject): CommonStatus {
  return (object.status as CommonStatus | undefined) ?? {};
}
