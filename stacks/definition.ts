import { existsSync } from "node:fs";
import Type from "typebox";
import { Compile } from "typebox/compile";
import { type AnyKind, describeError } from "./contract/kind";

const NAME = Type.String({ pattern: "^[a-z]([-a-z0-9]*[a-z0-9])?$", maxLength: 63 });
const OBJECT_TYPE = Type.Object({ apiVersion: Type.String({ minLength: 1 }), kind: Type.String({ minLength: 1 }) });
const OBJECT_SCHEMA = Type.Object({ type: Type.Literal("object") });
const FUNCTION = Type.Refine(
  Type.Unknown(),
  (value) => typeof value === "function",
  () => "must be a function",
);

/** What a kind's definition must have to be served; the compiler holds only those to its types who ask it. */
const validator = Compile(
  Type.Object({
    group: Type.String({
      pattern: "^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+$",
      maxLength: 253,
    }),
    version: Type.String({ pattern: "^v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?$" }),
    kind: Type.String({ pattern: "^[A-Z][A-Za-z0-9]*$", maxLength: 63 }),
    plural: NAME,
    singular: NAME,
    scope: Type.Enum(["Cluster", "Namespaced"]),
    description: Type.String(),
    spec: OBJECT_SCHEMA,
    status: OBJECT_SCHEMA,
    columns: Type.Array(Type.Object({ name: Type.String(), type: Type.String(), jsonPath: Type.String() })),
    owns: Type.Array(OBJECT_TYPE),
    directory: Type.Refine(
      Type.String(),
      existsSync,
      () => "does not exist; it must be __dirname or import.meta.dirname",
    ),
    program: FUNCTION,
    report: FUNCTION,
    capabilities: Type.Object({}),
  }),
);

/** What is wrong with a definition, with the kind's name, the field and its value; `undefined` when nothing is. */
export function definitionProblem(kind: AnyKind): string | undefined {
  const [error] = validator.Errors(kind);
  return error && `${typeof kind.kind === "string" ? kind.kind : "a kind"}: ${describeError(error, kind)}`;
}
