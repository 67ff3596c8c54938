import type Type from "typebox";
import { Compile } from "typebox/compile";
import { TerminalError } from "../../providers/errors";
import type { LiveObject, Manifest, ObjectType } from "../../providers/kubernetes/client";
import type { Owner } from "../../providers/kubernetes/ownership";
import { obeyedAnnotations } from "./annotations";
import type { Capabilities, NamedType, OutputsOf, ProgramContext } from "./capabilities";
import { definitionProblem, refuseDefinition } from "./definition";
import { describeErrors } from "./describe-error";
import { type CommonStatus, type KindObject, objectKey } from "./object";
import type { RunContext } from "./run-context";
import type { PrinterColumn } from "./served-version";

/** How a kind is called. */
export interface KindNames {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly singular: string;
  readonly shortNames?: readonly string[];
  /** What `kubectl get` takes for several kinds at once; each kind is in `kindstack` as well. */
  readonly categories?: readonly string[];
}

/**
 * A kind: everything that the operator, the command line and the CRD know of it. A TypeBox schema is both the CRD's structural
 * OpenAPI schema and the TypeScript type.
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
  readonly owns: readonly NamedType[];
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

/**
 * Declares a kind; the types of spec and status follow from the schemas.
 *
 * @throws TypeError naming each field of the definition or of its schemas that cannot be served, and what to write instead
 */
export function defineKind<const S extends Type.TSchema, const T extends Type.TObject>(
  definition: Definition<S, T>,
): Kind<StaticOnly<S>, StaticOnly<T>> {
  const kind = { capabilities: {}, ...definition } as Kind<StaticOnly<S>, StaticOnly<T>>;
  const problem = definitionProblem(kind);
  if (problem !== undefined) refuseDefinition(kind, problem);
  return kind;
}

/** What a function of a kind answers: at once in this process, later where the kind's code runs in another one. */
type Awaitable<T> = T | Promise<T>;

/** Functions of a kind, as the operator calls them. */
type Called<T> = {
  [Name in keyof T]: T[Name] extends ((...given: infer Given) => infer Answer) | undefined
    ? Extract<T[Name], undefined> | ((...given: Given) => Awaitable<Awaited<Answer>>)
    : T[Name];
};

// biome-ignore lint/suspicious/noExplicitAny: the boundary between the kinds' own types and code that serves all kinds
type Written<Spec = any, Status = any> = Kind<Spec, Status>;
type Capability<Name extends keyof Written["capabilities"]> = NonNullable<Written["capabilities"][Name]>;

/** A function of {@link Capabilities.outputs}. */
// biome-ignore lint/suspicious/noExplicitAny: as above
export type OutputField = (outputsOf: OutputsOf, object: KindObject<any, any>) => unknown;

/** The capabilities of a kind, as the operator calls them. */
export interface CalledCapabilities
  extends Omit<
    Called<Written["capabilities"]>,
    "settings" | "versions" | "watches" | "reads" | "liveState" | "claims" | "external" | "outputs"
  > {
  /** Known from the start: the environment of a process does not change. */
  readonly settings?: Capability<"settings">;
  readonly versions?: readonly Called<Capability<"versions">[number]>[];
  readonly watches?: readonly Called<Capability<"watches">[number]>[];
  readonly reads?: Readonly<Record<string, Called<Capability<"reads">[string]>>>;
  readonly liveState?: Called<Capability<"liveState">>;
  readonly claims?: Called<Capability<"claims">>;
  readonly external?: Called<Capability<"external">>;
  /** By fields of the status, an {@link OutputField} each. */
  readonly outputs?: object;
}

/** Any kind, as the operator handles it: it never looks into a spec, and waits for each answer. */
export interface AnyKind extends Omit<Written, "validate" | "report" | "capabilities"> {
  validate?(object: KindObject): Awaitable<void>;
  // biome-ignore lint/suspicious/noExplicitAny: as above
  report(object: KindObject<any, any>, owned: readonly LiveObject[]): Awaitable<object>;
  readonly capabilities: CalledCapabilities;
  /** Of a kind whose code runs in another process. */
  readonly remote?: RemotePrograms;
}

/** Runs the programs of a kind in another process. */
export interface RemotePrograms {
  /** Runs a program there, and declares here what it declares. */
  run(object: KindObject, context: RunContext): Promise<void>;
  /** Runs a program of the SDK's runtime there. @param request a serialized `pulumirpc.RunRequest` @param signal the update's */
  runInSdk(object: KindObject, context: RunContext, request: Uint8Array, signal: AbortSignal): Promise<void>;
}

export function kindApiVersion(kind: KindNames): string {
  return `${kind.group}/${kind.version}`;
}

/** The type of a kind's objects, in the stored version. */
export function kindType(kind: AnyKind): ObjectType {
  return { apiVersion: kindApiVersion(kind), kind: kind.kind };
}

/** `tenants.multitenancy.codereliant.io`: the name of a kind, unique in a cluster. */
export function kindName(kind: KindNames): string {
  return `${kind.plural}.${kind.group}`;
}

/** The object's name in the labels of its resources; the same for every user of its stack. */
export function ownerDescription(kind: AnyKind, key: string): string {
  return `${kind.kind}.${kind.group}/${key}`;
}

/** Whose an object's resources are, with what of them is left to others. */
export function ownerOf(kind: AnyKind, { metadata }: Pick<Manifest, "metadata">, uid = metadata.uid ?? ""): Owner {
  const ignoreFields = [...(kind.capabilities.ignoreFields ?? []), ...obeyedAnnotations({ metadata }).ignoreFields];
  const description = ownerDescription(kind, objectKey(metadata));
  return { uid, description, ...(ignoreFields.length > 0 && { ignoreFields }) };
}

/**
 * Whether all that a killed update made is found again though no state has it: what the kind {@link Kind.owns} by its owner's
 * label, the rest by {@link ExternalResources.removeUntracked}. Nothing leads to resources of plugins.
 */
export function adoptsAfterCrash({ owns, capabilities: { sdkRuntime, providers, external } }: AnyKind): boolean {
  if (sdkRuntime !== undefined) return false;
  return external !== undefined || (providers === undefined && owns.length > 0);
}

const validators = new WeakMap<object, ReturnType<typeof Compile>>();

/**
 * Parses what came from the API server, whose CRD may be an older one, or from a file.
 *
 * @throws TerminalError naming the field, its value and what is allowed
 */
export async function parseServed(kind: AnyKind, object: LiveObject): Promise<KindObject> {
  const fitting = fitSchema(kind, object) as KindObject;
  await kind.validate?.(fitting);
  return fitting;
}

/** The same for a kind of this process. */
export function parseObject<Spec, Status>(kind: Kind<Spec, Status>, object: LiveObject): KindObject<Spec, Status> {
  const fitting = fitSchema(kind, object) as KindObject<Spec, Status>;
  kind.validate?.(fitting);
  return fitting;
}

function fitSchema(kind: Pick<AnyKind, "spec">, object: LiveObject): unknown {
  let validator = validators.get(kind);
  if (validator === undefined) {
    validator = Compile(kind.spec);
    validators.set(kind, validator);
  }
  const spec = object.spec;
  const errors = validator.Errors(spec);
  if (errors.length > 0) throw new TerminalError("Invalid", describeErrors(errors, spec, "spec"));
  const rounded = findRounded(spec, "spec");
  if (rounded !== undefined) {
    const problem = "is beyond 2^53, and not exact any more; write it as a text, if the kind takes one";
    throw new TerminalError("Invalid", `${rounded} ${problem}`);
  }
  return object;
}

/** The path of a number that may have been rounded as it was read, also in fields that a CRD says nothing about. */
function findRounded(value: unknown, path: string): string | undefined {
  if (typeof value === "number") return Number.isInteger(value) && !Number.isSafeInteger(value) ? path : undefined;
  if (typeof value !== "object" || value === null) return undefined;
  for (const [name, inner] of Object.entries(value)) {
    const found = findRounded(inner, `${path}.${name}`);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The whole status of an object, typed by the fields that all kinds have; empty when it has no status yet. */
export function statusOf(object: LiveObject): CommonStatus {
  return (object.status as CommonStatus | undefined) ?? {};
}
