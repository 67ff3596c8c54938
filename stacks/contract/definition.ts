import { existsSync } from "node:fs";
import Type from "typebox";
import { Compile } from "typebox/compile";
import { parseIgnoredFields } from "../../providers/kubernetes/ignored-fields";
import { describeErrors } from "./describe-error";
import { structuralSchema } from "./structural";

const NAME = Type.String({ pattern: "^[a-z]([-a-z0-9]*[a-z0-9])?$", maxLength: 63 });
const VERSION = Type.String({ pattern: "^v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?$" });
const OBJECT_TYPE = Type.Object({ apiVersion: Type.String({ minLength: 1 }), kind: Type.String({ minLength: 1 }) });
const OBJECT_SCHEMA = Type.Object({ type: Type.Literal("object") });
const JSON_PATH = Type.String({ pattern: "^\\." });
const FUNCTION = Type.Refine(
  Type.Unknown(),
  (value) => typeof value === "function",
  () => "must be a function",
);

const SCALE = Type.Object({
  specReplicasPath: Type.String({ pattern: "^\\.spec\\." }),
  statusReplicasPath: Type.String({ pattern: "^\\.status\\." }),
  labelSelectorPath: Type.Optional(Type.String({ pattern: "^\\.(spec|status)\\." })),
});

const COLUMNS = Type.Array(
  Type.Object({
    name: Type.String({ minLength: 1 }),
    type: Type.Enum(["string", "integer", "number", "boolean", "date"]),
    jsonPath: JSON_PATH,
    format: Type.Optional(Type.String({ minLength: 1 })),
    description: Type.Optional(Type.String()),
    priority: Type.Optional(Type.Integer({ minimum: 0 })),
  }),
);

/** What a kind's definition must have to be served; the compiler holds only those to its types who ask it. */
const validator = Compile(
  Type.Object({
    group: Type.Refine(
      Type.String({
        pattern: "^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+$",
        maxLength: 253,
      }),
      (group) => !/(^|\.)(k8s|kubernetes)\.io$/.test(group),
      () => "is reserved for Kubernetes; take a domain of yours",
    ),
    version: VERSION,
    kind: Type.String({ pattern: "^[A-Z][A-Za-z0-9]*$", maxLength: 63 }),
    plural: NAME,
    singular: NAME,
    shortNames: Type.Optional(Type.Array(NAME)),
    categories: Type.Optional(Type.Array(NAME)),
    scope: Type.Enum(["Cluster", "Namespaced"]),
    description: Type.String(),
    spec: Type.Object({}),
    status: OBJECT_SCHEMA,
    columns: COLUMNS,
    owns: Type.Array(OBJECT_TYPE),
    directory: Type.Refine(
      Type.String(),
      existsSync,
      () => "does not exist; it must be __dirname or import.meta.dirname",
    ),
    program: FUNCTION,
    report: FUNCTION,
    capabilities: Type.Object({
      ignoreFields: Type.Optional(
        Type.Array(
          Type.Refine(
            Type.String(),
            (field) => parseIgnoredFields(field).fields.length === 1,
            () => "must be <Kind>:<field> or <Kind>/<name>:<field>, such as Deployment:spec.replicas",
          ),
        ),
      ),
      refreshEvery: Type.Optional(Type.Number({ minimum: 10 })),
      reads: Type.Optional(
        Type.Record(
          Type.String(),
          Type.Object({
            apiVersion: Type.String({ minLength: 1 }),
            kind: Type.String({ minLength: 1 }),
            name: FUNCTION,
          }),
        ),
      ),
      versions: Type.Optional(
        Type.Array(
          Type.Object({
            version: VERSION,
            spec: Type.Object({}),
            scale: Type.Optional(SCALE),
            columns: Type.Optional(COLUMNS),
          }),
        ),
      ),
      scale: Type.Optional(SCALE),
    }),
  }),
);

interface Defined {
  spec: object;
  status: object;
  capabilities: {
    versions?: readonly { version: string; spec: object }[];
  };
}

/** What is wrong with a definition, with the kind's name, the field and its value; `undefined` when nothing is. */
export function definitionProblem(definition: object): string | undefined {
  const { kind: name } = definition as { kind?: unknown };
  const prefix = `${typeof name === "string" ? name : "a kind"}: `;
  const errors = validator.Errors(definition);
  if (errors.length > 0) return prefix + describeErrors(errors, definition);
  const { spec, status, capabilities } = definition as Defined;
  const schemas = [
    ["spec", spec],
    ["status", status],
    ...(capabilities.versions ?? []).map(({ version, spec: served }) => [`${version}.spec`, served] as const),
  ] as const;
  const problems = schemas.flatMap(([path, schema]) => {
    try {
      const { type } = structuralSchema(schema, path);
      return type === "object" ? [] : [`${path}: it is ${type}: write Type.Object`];
    } catch (problem) {
      return [(problem as Error).message];
    }
  });
  return problems.length === 0 ? undefined : prefix + problems.join("; ");
}

/** Of definitions that are being loaded, what is wrong with each; `undefined` while none are. */
let refused: Map<object, string> | undefined;

export function refuseDefinition(definition: object, problem: string): void {
  if (refused === undefined) throw new TypeError(problem);
  refused.set(definition, problem);
}

/** Loads modules; some may define kinds that cannot be served. @returns what is wrong with each, by definition */
export function collectRefused<T>(load: () => T): { loaded: T; problems: ReadonlyMap<object, string> } {
  const outer = refused;
  const problems = new Map<object, string>();
  refused = problems;
  try {
    return { loaded: load(), problems };
  } finally {
    refused = outer;
  }
}
