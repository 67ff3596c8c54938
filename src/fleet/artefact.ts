import { readFile } from "node:fs/promises";
import { text as textFrom } from "node:stream/consumers";
import Type from "typebox";
import { Check, Errors } from "typebox/value";
import { errorMessageOf } from "../../providers/errors";
import { closed } from "../plan/resource-plan";
import { readJson } from "../text/json";

/*
 * The files between the three parts of a fleet's preview, which may be three jobs. A fleet: live objects, with all that their
 * programs may read. Programs run on it without any right. Declarations: the results of these programs, to be previewed.
 */

export const FLEET_FORMAT = "kindstack.dev/fleet/v1";
export const DECLARATIONS_FORMAT = "kindstack.dev/declarations/v1";

/** Of an object, and of what is below it in names of the API server. */
const name = Type.String({ minLength: 1, maxLength: 253, pattern: "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$" });
const text = Type.String({ maxLength: 4096 });

const liveSchema = Type.Object(
  {
    apiVersion: Type.String(),
    kind: Type.String(),
    metadata: Type.Object(
      { name: Type.String(), uid: Type.String(), resourceVersion: Type.String() },
      { additionalProperties: Type.Unknown() },
    ),
  },
  { additionalProperties: Type.Unknown() },
);
const typeSchema = Type.Object({ apiVersion: Type.String(), kind: Type.String() });

const fleetSchema = closed({
  format: Type.Literal(FLEET_FORMAT),
  at: Type.String({ description: "When it was fetched. Objects that were created later are not in it." }),
  cluster: Type.Optional(Type.Object({ uid: Type.String(), name: Type.Optional(Type.String()) })),
  kinds: Type.Array(
    closed({
      kind: Type.String({ description: "Such as `tenants.multitenancy.codereliant.io`." }),
      objects: Type.Array(liveSchema),
      alternatives: Type.Array(liveSchema, { description: "The same objects in other versions that may be stored." }),
      stored: Type.Array(Type.String(), { description: "The versions in which objects may be stored." }),
      owned: closed({ types: Type.Array(typeSchema), objects: Type.Array(liveSchema) }),
      watched: Type.Array(
        closed({ ...typeSchema.properties, selector: Type.String(), objects: Type.Array(liveSchema) }),
      ),
    }),
  ),
  references: Type.Array(
    closed({
      id: Type.String({ description: "`<apiVersion>/<kind>/<namespace>/<name>`" }),
      object: Type.Optional(liveSchema),
      unknown: Type.Optional(Type.String({ description: "Why it could not be read. Without both, there is none." })),
    }),
  ),
  notes: Type.Array(Type.String()),
  unchecked: Type.Array(Type.String()),
});

export type Fleet = Type.Static<typeof fleetSchema>;
export type FleetKind = Fleet["kinds"][number];

const index = Type.Integer({ minimum: 0 });
const alias = closed({
  name: Type.Optional(text),
  type: Type.Optional(text),
  noParent: Type.Optional(Type.Literal(true)),
});
const strings = Type.Array(text, { maxItems: 100 });
const time = Type.Optional(Type.String({ maxLength: 32 }));

/** A resource as a program has declared it. Closed, as the engine obeys what it is told of a resource. */
const resourceSchema = closed({
  type: text,
  name: Type.String({ minLength: 1, maxLength: 1024 }),
  provider: Type.Optional(text),
  inputs: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
  secret: Type.Optional(Type.Literal(true)),
  parent: Type.Optional(index),
  dependsOn: Type.Optional(Type.Array(index, { maxItems: 10_000 })),
  options: Type.Optional(
    closed({
      aliases: Type.Optional(Type.Array(closed({ spec: alias }), { maxItems: 100 })),
      ignoreChanges: Type.Optional(strings),
      deleteBeforeReplace: Type.Optional(Type.Boolean()),
      deleteBeforeReplaceDefined: Type.Optional(Type.Literal(true)),
      protect: Type.Optional(Type.Boolean()),
      customTimeouts: Type.Optional(closed({ create: time, update: time, delete: time })),
      additionalSecretOutputs: Type.Optional(strings),
    }),
  ),
  aliasParents: Type.Optional(Type.Record(Type.String({ maxLength: 3 }), index)),
});

const MAX_RESOURCES = 2_000;

export const declaredSchema = closed({
  kind: Type.String({ minLength: 1, maxLength: 253 }),
  namespace: Type.Optional(name),
  name,
  uid: Type.String({ maxLength: 64 }),
  generation: Type.Integer({ minimum: 0 }),
  outcome: Type.Union([
    closed({
      type: Type.Literal("declared"),
      resources: Type.Array(resourceSchema, { maxItems: MAX_RESOURCES }),
      spec: Type.Optional(
        Type.Record(Type.String(), Type.Unknown(), {
          description:
            "What the program took for the object's spec, where it is not as it was fetched: plans depend on it.",
        }),
      ),
      refused: Type.Optional(text),
    }),
    closed({ type: Type.Enum(["invalid", "failed", "unchecked"]), message: text }),
  ]),
});

/** The versions of the providers that the programs had, by stub; `null` for a provider that has none. */
export const providersSchema = Type.Record(text, Type.Union([Type.Integer(), Type.Null()]));

export const declarationsSchema = closed({
  format: Type.Literal(DECLARATIONS_FORMAT),
  providers: providersSchema,
  objects: Type.Array(declaredSchema),
  notFetched: Type.Array(Type.String(), { description: "Kinds that the fetching program did not have." }),
});

export type Declarations = Type.Static<typeof declarationsSchema>;
export type Declared = Type.Static<typeof declaredSchema>;
export type PortableResource = Type.Static<typeof resourceSchema>;

export function resourcesOf({ outcome }: Declared): number {
  return outcome.type === "declared" ? outcome.resources.length : 0;
}

/** @throws Error for a file of another form */
export async function readFleet(file: string): Promise<Fleet> {
  return read(file, fleetSchema, "kindstack fleet fetch");
}

/** @throws Error for a file of another form */
export async function readDeclarations(file: string): Promise<Declarations> {
  return read(file, declarationsSchema, "kindstack fleet run");
}

/** The word for standard input, and standard output. */
export const STANDARD = "-";

async function textOf(file: string, command: string): Promise<string> {
  try {
    return await (file === STANDARD ? textFrom(process.stdin) : readFile(file, "utf8"));
  } catch (error) {
    throw new Error(`${file} cannot be read: ${errorMessageOf(error)}. \`${command} --to ${file}\` writes it`);
  }
}

async function read<T extends Type.TSchema>(file: string, schema: T, command: string): Promise<Type.Static<T>> {
  const value = readJson(await textOf(file, command));
  if (Check(schema, value)) return value;
  const [first] = value === undefined ? [] : Errors(schema, value);
  const why =
    first === undefined ? "it is no JSON, or not all of it" : `${first.instancePath || "it"} ${first.message}`;
  throw new Error(`${file} is not what ${command} of this version writes: ${why}`);
}
