import Type from "typebox";
import { Check, Errors } from "typebox/value";
import { providerVersions } from "../../providers/index";
import type { LiveObject, Manifest } from "../../providers/kubernetes/client";
import type { Cluster } from "../../providers/kubernetes/cluster";
import { OBJECT_STUB } from "../../providers/kubernetes/object";
import type { Owner } from "../../providers/kubernetes/ownership";
import { escapeReserved } from "../../providers/literal";
import { ROW_STUB } from "../../providers/postgres/row";
import type { DeclaredResource } from "../../providers/registration";
import { PROVIDER_PROPERTY, RETAINED } from "../../providers/resource-options";
import { type AnyKind, ownerOf } from "../../stacks/contract/kind";
import { closed } from "../plan/resource-plan";
import type { Declarations, PortableResource } from "./artefact";

/*
 * Declarations of programs that ran elsewhere are input of strangers: of them, an engine and providers are told what a program of
 * the installed kind could have declared for this very object, and nothing else.
 */

export interface Admitted {
  resources: DeclaredResource[];
  /** The names of those whose values are not in the file. */
  secrets: ReadonlySet<string>;
  /** What is left out, and why. */
  notPreviewed: string[];
}

export interface Admitting {
  /** As it is installed. */
  kind: AnyKind;
  live: LiveObject;
  cluster: Cluster | undefined;
  /** The versions of the providers where the programs ran. */
  providers: Declarations["providers"];
}

const MAX_DEPTH = 64;
const COMPONENT = /^[\w.-]+:[\w./-]+:[\w.-]+$/;
/** What SDKs and JavaScript take for something else than data. */
const RESERVED_KEY = /^__(proto__$|pulumi)/;

const texts = Type.Record(Type.String(), Type.String());
const reference = Type.Object({
  apiVersion: Type.String(),
  kind: Type.String(),
  name: Type.String(),
  uid: Type.String(),
});
const manifestSchema = Type.Object(
  {
    apiVersion: Type.String({ minLength: 1 }),
    kind: Type.String({ minLength: 1 }),
    metadata: Type.Object(
      {
        name: Type.String({ minLength: 1, maxLength: 253 }),
        namespace: Type.Optional(Type.String({ minLength: 1, maxLength: 63 })),
        labels: Type.Optional(texts),
        annotations: Type.Optional(texts),
        ownerReferences: Type.Optional(Type.Array(reference, { maxItems: 20 })),
        finalizers: Type.Optional(Type.Array(Type.String())),
      },
      { additionalProperties: Type.Unknown() },
    ),
  },
  { additionalProperties: Type.Unknown() },
);
const ignoreFields = Type.Optional(Type.Array(Type.String({ maxLength: 512 }), { maxItems: 200 }));
const owner = Type.Object({ ignoreFields });
const retained = Type.Optional(Type.Literal(true));

const objectInputs = closed({
  manifest: manifestSchema,
  owner,
  adopt: Type.Optional(Type.Union([Type.Boolean(), Type.Literal("replace")])),
  replaceOnChanges: Type.Optional(Type.Array(Type.String({ maxLength: 512 }), { maxItems: 100 })),
  existing: Type.Optional(Type.Boolean()),
  givenBy: Type.Optional(Type.String()),
  deletedWith: Type.Optional(reference),
  initial: Type.Optional(closed({ manifest: manifestSchema, fieldManager: Type.String({ maxLength: 128 }) })),
  awaitDeletion: Type.Optional(Type.Boolean()),
  [RETAINED]: retained,
});
const column = Type.Union([Type.String(), Type.Number(), Type.Boolean(), Type.Null()]);
const rowInputs = closed({
  table: Type.String({ maxLength: 256 }),
  key: texts,
  values: Type.Record(Type.String(), column),
  owner,
  [RETAINED]: retained,
});

/**
 * Picks from an object's declarations what may be previewed. The object's stack is the operator's to name, as are the owner of
 * each resource and, by both, its URN.
 *
 * @throws Error for declarations that no program of the kind can make: nothing of them is previewed
 */
export function admit(admitting: Admitting, declared: readonly PortableResource[]): Admitted {
  const notPreviewed: string[] = [];
  const secrets = new Set<string>();
  const resources: DeclaredResource[] = [];
  /** By the index in the declarations, that among those which are previewed. */
  const indexes = new Map<number, number>();
  for (const [index, resource] of declared.entries()) {
    checkReferences(resource, index);
    const { parent, dependsOn = [], aliasParents = {}, options, secret } = resource;
    const why =
      parent !== undefined && !indexes.has(parent) ? "is below what is not previewed" : whyNot(admitting, resource);
    if (why !== undefined) {
      notPreviewed.push(`${JSON.stringify(resource.name)} ${why}`);
      continue;
    }
    const others = dependsOn.flatMap((other) => indexes.get(other) ?? []);
    const former = Object.entries(aliasParents).map(
      ([alias, was]) => [alias, indexOf(indexes, was, resource)] as const,
    );
    const inputs = inputsOf(admitting, resource);
    if (secret) secrets.add(resource.name);
    indexes.set(index, resources.length);
    resources.push({
      type: resource.type,
      name: resource.name,
      ...(inputs && { inputs }),
      ...(parent !== undefined && { parent: indexOf(indexes, parent, resource) }),
      ...(others.length > 0 && { dependsOn: others }),
      ...(options && { options: options as NonNullable<DeclaredResource["options"]> }),
      ...(former.length > 0 && { aliasParents: Object.fromEntries(former) }),
    });
  }
  return { resources, secrets, notPreviewed };
}

/** @throws Error for a reference to what is not declared before it, such as to itself */
function checkReferences(
  { name, parent, dependsOn = [], options, aliasParents = {} }: PortableResource,
  index: number,
) {
  const others = [...(parent === undefined ? [] : [parent]), ...dependsOn, ...Object.values(aliasParents)];
  if (others.some((other) => other >= index)) refuse(name, "refers to what is not declared before it");
  const aliases = options?.aliases?.length ?? 0;
  if (Object.keys(aliasParents).some((alias) => !/^\d+$/.test(alias) || Number(alias) >= aliases)) {
    refuse(name, "names the parent of an alias that it does not have");
  }
}

function indexOf(indexes: ReadonlyMap<number, number>, index: number, { name }: PortableResource): number {
  return indexes.get(index) ?? refuse(name, "was below what is not previewed");
}

/** Why a resource is not previewed; `undefined` where it is. @throws Error where the whole object cannot be */
function whyNot({ kind, live, providers }: Admitting, resource: PortableResource): string | undefined {
  const { type, name, provider, inputs } = resource;
  if (inputs === undefined) {
    if (!COMPONENT.test(type) || type.startsWith("pulumi:")) refuse(name, `has the type ${JSON.stringify(type)}`);
    return undefined;
  }
  if (provider !== OBJECT_STUB && provider !== ROW_STUB) {
    refuse(name, "is of a provider of the kind's own, which is called for no declarations from elsewhere");
  }
  const version = providerVersions(kind).get(provider);
  if (!Object.hasOwn(providers, provider) || providers[provider] !== version) {
    refuse(name, "is of a provider that has another version where the program ran");
  }
  checkPlain(name, inputs);
  if (provider === ROW_STUB) {
    checkInputs(name, rowInputs, inputs);
    if (type !== "pulumi-nodejs:dynamic/postgres:Row") refuse(name, `has the type ${JSON.stringify(type)}`);
    return kind.capabilities.external === undefined ? `is a row, and the installed ${kind.kind} has none` : undefined;
  }
  checkInputs(name, objectInputs, inputs);
  const { manifest, initial } = inputs as unknown as { manifest: Manifest; initial?: { manifest: Manifest } };
  if (type !== `pulumi-nodejs:dynamic/kubernetes:${manifest.kind}`)
    refuse(name, `has the type ${JSON.stringify(type)}`);
  if (initial !== undefined && !isSame(initial.manifest, manifest)) refuse(name, "is created as another object");
  const { namespace } = live.metadata;
  const elsewhere = manifest.metadata.namespace;
  if (namespace !== undefined && elsewhere !== undefined && elsewhere !== namespace) {
    refuse(name, `is in the namespace ${elsewhere}, and its object is in ${namespace}`);
  }
  const isOwned = kind.owns.some((owned) => owned.apiVersion === manifest.apiVersion && owned.kind === manifest.kind);
  return isOwned
    ? undefined
    : `is a ${manifest.kind} of ${manifest.apiVersion}, which the installed ${kind.kind} does not own`;
}

function isSame(one: Manifest, other: Manifest): boolean {
  const idOf = ({ apiVersion, kind, metadata: { name, namespace } }: Manifest) =>
    JSON.stringify([apiVersion, kind, namespace, name]);
  return idOf(one) === idOf(other);
}

function checkInputs(name: string, schema: Type.TSchema, inputs: unknown): void {
  if (Check(schema, inputs)) return;
  const [first] = Errors(schema, inputs);
  refuse(name, `has inputs that its provider does not take: ${first?.instancePath} ${first?.message}`);
}

/** @throws Error for what is no plain data, or nested so deep that the readers after this one might fail */
export function checkPlain(name: string, value: unknown, depth = 0): void {
  if (typeof value !== "object" || value === null) return;
  if (depth > MAX_DEPTH) refuse(name, `is nested more than ${MAX_DEPTH} levels deep`);
  for (const [key, part] of Object.entries(value)) {
    if (RESERVED_KEY.test(key)) refuse(name, `has the key ${JSON.stringify(key)}`);
    checkPlain(name, part, depth + 1);
  }
}

/** What the provider is given: the owner is the object whose declarations they are said to be, whatever these say. */
function inputsOf(
  { kind, live, cluster }: Admitting,
  { provider, inputs }: PortableResource,
): Record<string, unknown> | undefined {
  if (inputs === undefined) return undefined;
  const { ignoreFields: _, ...own } = ownerOf(kind, live);
  const { ignoreFields = [] } = inputs.owner as Pick<Owner, "ignoreFields">;
  const { namespace } = live.metadata;
  const isRow = provider === ROW_STUB;
  const owner = {
    ...own,
    ...(ignoreFields.length > 0 && { ignoreFields }),
    ...(isRow && cluster && { cluster }),
    ...(isRow && namespace && { namespace }),
  };
  return { ...escapeReserved({ ...inputs, owner }), [PROVIDER_PROPERTY]: provider };
}

function refuse(name: string, why: string): never {
  throw new Error(`${JSON.stringify(name)} ${why}`);
}
