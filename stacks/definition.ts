import { existsSync } from "node:fs";
import Type from "typebox";
import { Compile } from "typebox/compile";
import type { AnyKind } from "./contract/kind";

const NAME = Type.String({ pattern: "^[a-z]([-a-z0-9]*[a-z0-9])?$", maxLength: 63 });
const OBJECT_TYPE = Type.Object({ apiVersion: Type.String({ minLength: 1 }), kind: Type.String({ minLength: 1 }) });
const OBJECT_SCHEMA = Type.Object({ type: Type.Literal("object") });

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
    directory: Type.String(),
    capabilities: Type.Object({}),
  }),
);

/** What is wrong with a definition, with the kind's name, the field and its value; `undefined` when nothing is. */
export function definitionProblem(kind: AnyKind): string | undefined {
  const name = typeof kind.kind === "string" ? kind.kind : "a kind";
  const [error] = validator.Errors(kind);
  if (error !== undefined) {
    const path = error.instancePath.split("/").slice(1);
    const value = path.reduce<unknown>((part, key) => (part as Record<string, unknown> | undefined)?.[key], kind);
    const shown = path.length === 0 ? "" : ` ${path.join(".")}: ${JSON.stringify(value)}`;
    return `${name}:${shown} ${error.message}`;
  }
  for (const field of ["program", "report"] as const) {
    if (typeof kind[field] !== "function") return `${name}: ${field} must be a function`;
  }
  return existsSync(kind.directory)
    ? undefined
    : `${name}: directory: ${kind.directory} does not exist; it must be __dirname or import.meta.dirname`;
}
