import type { DefinedProvider } from "../../providers/dynamic";
import type { ClassifiedError } from "../../providers/errors";
import type { LiveObject, Manifest, ObjectType } from "../../providers/kubernetes/client";
import type { Cluster } from "../../providers/kubernetes/cluster";
import type { Owner } from "../../providers/kubernetes/ownership";
import type { Log } from "../../providers/log";
import type { Properties, ProviderContext } from "../../providers/provider";
import type { KindAdmission } from "./admission";
import type { NewCondition } from "./condition";
import type { KindObject } from "./object";
import type { ScalePaths, ServedVersion } from "./served-version";

/** A type, with the name of its resource where that is not the usual plural of the kind's name. */
export interface NamedType extends ObjectType {
  plural?: string;
}

/** An object of others, which a kind's program needs to read. */
export interface Reference<Spec = unknown, Status = unknown> extends NamedType {
  /** Its name, by a field of the object; `undefined` where the object names none. Pure. */
  name(object: KindObject<Spec, Status>): string | undefined;
  /** Where it is, as the kind's author decides; by default the object's own namespace, so that no one reads what is another's. */
  namespace?: string;
  /** Of a type whose objects are in no namespace. */
  scope?: "Cluster";
}

/** What a program may know besides its object. */
export interface ProgramContext {
  /** Recorded on every resource of the program, so that it can be found and no other owner takes it. */
  owner: Owner;
  /** The cluster that the object is in, if it is known. */
  cluster?: Cluster;
  /** The live objects of the types in {@link LiveState.reads} that carry this owner. */
  owned: readonly LiveObject[];
  /** The ids ({@link objectId}) of those that the last update recorded in the stack. */
  recorded: ReadonlySet<string>;
  /** The live objects of {@link Capabilities.watches} that are for this object. */
  watched: readonly LiveObject[];
  /** What the operator's caches, which may be behind, show of all that the object owns; for the order of work alone. */
  cached?: readonly LiveObject[];
  /**
   * What a reference of {@link Capabilities.reads} leads to; `undefined` where there is no such object yet, or none is named. The
   * object is updated again when that changes.
   */
  read<T extends object = LiveObject>(reference: string): T | undefined;
  /** What is printed by `console` comes here as well. */
  log: Log;
}

/** Objects of others that concern an object of the kind. */
export interface Watch extends ObjectType {
  /** Only what it selects is watched. */
  labelSelector: string;
  /** Selects at least what concerns the object of this key. */
  selectorOf(key: string): string;
  /** The keys of the kind's objects that one of these concerns; a change of it leads to them. */
  keysOf(object: LiveObject): string[];
  /** Whether the deletion of an object deletes all that is watched for it, though others made that. */
  deletedWithObject?: true;
}

/** What a kind has at hand to maintain an object; see {@link Capabilities.maintain}. */
export interface Maintenance {
  /** The live objects of the types in {@link Kind.owns}, not older than what `apply` returned last. */
  owned: readonly LiveObject[];
  /** Server-side apply of fields that are no part of the stack, for which they need a field manager of their own. */
  apply(manifest: Manifest, fieldManager: string): Promise<void>;
  /** A dry run of a server-side apply. @returns the refusal's message; `undefined` when it would be accepted */
  tryOut(manifest: Manifest): Promise<string | undefined>;
  /** Deletes a live object of a type in {@link Kind.owns}, and no successor of its name. */
  remove(object: LiveObject): Promise<void>;
  /** What the kind remembers of the object between two calls, until the object is gone or another replica has it. */
  memory: Map<string, unknown>;
  /** Warns of a live object by an Event. */
  warn(object: LiveObject, reason: string, message: string): void;
}

/** A rule over the whole object, in CEL, that the API server enforces. */
export interface ValidationRule {
  rule: string;
  message: string;
}

/** What {@link ExternalResources.findDrift} found. */
export interface DriftReport {
  /** What is not as it should be of the objects that have drifted, for people, by UID. */
  drifted: ReadonlyMap<string, string>;
  /** Why objects could not be compared, by UID. */
  unknown: ReadonlyMap<string, ClassifiedError>;
}

/** A condition of the kind's own; the generation is added. */
export type KindCondition = Omit<NewCondition, "observedGeneration">;

/** The outputs of a resource, by its name in the program, without secrets; `undefined` where there is none of that name. */
export type OutputsOf = (resource: string) => Properties | undefined;

/** For programs that depend on what is alive, such as on which Pods are ready. */
export interface LiveState<Spec, Status> {
  /** Those of {@link Kind.owns} that the program depends on; it gets them, and what it watches, from the API server. */
  readonly reads: readonly ObjectType[];
  /** What calls for an update though no field has drifted, such as one Pod too few: a text for each. Pure. */
  needsReconcile(
    object: KindObject<Spec, Status>,
    owned: readonly LiveObject[],
    watched: readonly LiveObject[],
  ): string[];
  /**
   * Of that, what completed by itself. It is replaced at once the first time, and with back-off when that happens again.
   * Until then, the kind sees it without a status, as it began. Pure.
   */
  completed?(owned: readonly LiveObject[]): string[];
}

/** For what at most one object may hold, such as a namespace. */
export interface ExclusiveClaims<Spec, Status> {
  /**
   * Ids ({@link objectId}) of what the object claims. While another object holds one of them, this one gets a condition and
   * no update, unless the kind can {@link withhold}.
   */
  of(object: KindObject<Spec, Status>, watched: readonly LiveObject[]): string[];
  /**
   * The object without what another one holds. An object that was updated before is updated with the rest, so that rights
   * that it takes away do not stay. Pure.
   */
  withhold?(object: KindObject<Spec, Status>, ids: ReadonlySet<string>): KindObject<Spec, Status>;
}

/** For resources that nothing in the cluster watches, such as rows. */
export interface ExternalResources<Spec, Status> {
  /** Which of these objects have drifted; called periodically with all Synced ones. When it throws, as nothing can be asked, all of them are DriftUnknown */
  findDrift(objects: readonly KindObject<Spec, Status>[]): Promise<DriftReport>;
  /**
   * Removes all that was ever made for this owner, except the resources with these outputs. Called after the update or
   * destroy that follows one that was cut off, since what that one made may be in no state.
   *
   * @param options with `release`, it is left as it is, unmanaged
   * @returns what that was, in words, such as `row default/a of table public.students`: an Event tells of each
   */
  removeUntracked(
    owner: Owner,
    kept: readonly Properties[],
    options: { release: boolean },
    context: ProviderContext,
    // biome-ignore lint/suspicious/noConfusingVoidType: a function may return nothing
  ): Promise<readonly string[] | void>;
}

/**
 * Lets users who may not list all namespaces list those of the objects that they own; `kindstack proxy` serves them.
 *
 * A namespace belongs to the object that its label names.
 */
export interface NamespaceView {
  /** The label's key; its value is the object's name. */
  readonly label: string;
  /** The groups whose members see only their own namespaces, by default. */
  readonly userGroups: readonly string[];
  /** An object's owners, as keys that {@link ownerKeysOf} returns for the same user. Pure. */
  ownersOf(object: LiveObject): string[];
  /** All keys of a user as an owner: by name, and by each group. Pure. */
  ownerKeysOf(user: { name: string; groups: readonly string[] }): string[];
}

/** One rule of a Role, as Kubernetes has it. */
export interface PolicyRule {
  apiGroups: readonly string[];
  resources: readonly string[];
  resourceNames?: readonly string[];
  verbs: readonly string[];
}

/** What only some kinds need. */
export interface Capabilities<Spec = unknown, Status = unknown> {
  /** Rules over more than the spec, such as the name. */
  readonly rules?: readonly ValidationRule[];
  /** The scale subresource (`kubectl scale`, autoscalers). */
  readonly scale?: ScalePaths;
  /** Rights that the operator needs for this kind besides those on the kind itself and on what it owns. */
  readonly permissions?: readonly PolicyRule[];
  /** The same, each for where the variable of the environment that is its key is `true`. */
  readonly optionalPermissions?: Readonly<Record<string, readonly PolicyRule[]>>;
  /** What the program takes from the operator's environment; when it changes, all objects are updated. */
  settings?(): unknown;
  /** The environment variables that only this kind reads, with their meaning for `kindstack run --help`. */
  readonly environment?: Readonly<Record<string, string>>;
  /**
   * The program runs in the Pulumi SDK's own runtime, with all that the SDK has: outputs as inputs, secrets, components,
   * plugins. Without, resources get plain values, which takes a third of the time.
   */
  readonly sdkRuntime?: true;
  /**
   * How often, in seconds, each object's stack is compared with the real world and drift is corrected, for resources that nothing
   * watches, such as those of plugins. Objects are spread over this time.
   */
  readonly refreshEvery?: number;
  /** Dynamic providers of the kind's own; see {@link defineProvider}. */
  readonly providers?: readonly DefinedProvider[];
  /** Versions of the API that are served besides {@link KindNames.version}, which is stored; needs admission to be served. */
  readonly versions?: readonly ServedVersion<Spec>[];
  /** Objects that others make and that the program needs to know of; they are watched and indexed. */
  readonly watches?: readonly Watch[];
  /** Objects of others that the object names by its fields, such as a Secret; see {@link ProgramContext.read}. */
  readonly reads?: Readonly<Record<string, Reference<Spec, Status>>>;
  readonly liveState?: LiveState<Spec, Status>;
  readonly claims?: ExclusiveClaims<Spec, Status>;
  readonly external?: ExternalResources<Spec, Status>;
  /**
   * Fields of what the program makes that are left to others once they are there, such as `Deployment:spec.replicas` for an
   * autoscaler; users name more in the annotation `kindstack.dev/ignore-fields`.
   */
  readonly ignoreFields?: readonly string[];
  /**
   * What the object still waits for before it is Ready, in place of the rules of kstatus for what it owns: a text for each,
   * none when it is ready. It holds up no update and starts none. Pure.
   */
  readyWhen?(object: KindObject<Spec, Status>, owned: readonly LiveObject[]): string[];
  /** Fields of the status that outputs of resources give, also of plugins; they are set after each update. Pure. */
  readonly outputs?: {
    readonly [Field in keyof Status]?: (
      outputsOf: OutputsOf,
      object: KindObject<Spec, Status>,
    ) => Status[Field] | undefined;
  };
  /**
   * Conditions besides the standard ones. Pure.
   *
   * @param failure why the last update, or the destroy, failed; `undefined` when it did not, or when the first one runs
   */
  conditions?(
    object: KindObject<Spec, Status>,
    owned: readonly LiveObject[],
    failure: string | undefined,
  ): KindCondition[];
  /** What each of these conditions says when it is true, for the page of the kind (`kindstack docs`). */
  readonly conditionTypes?: Readonly<Record<string, string>>;
  /**
   * Maintains fields that are no part of the stack. It runs with each reconcile, a few times a second at most, and must do
   * nothing when nothing is to be done.
   *
   * @returns when to look again, where no event will lead to it
   */
  maintain?(
    object: KindObject<Spec, Status>,
    maintenance: Maintenance,
  ): Promise<{ requeueAfterMs: number } | undefined>;
  /** Admission for others' requests to the API server. */
  readonly admission?: KindAdmission;
  /** The namespaces that an object's owners may list. */
  readonly namespaceView?: NamespaceView;
}
