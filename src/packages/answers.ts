import Type, { type TSchema } from "typebox";
import { Compile } from "typebox/compile";
import type { DeclaredResource } from "../../providers/registration";
import type { FunctionPath } from "./messages";

const texts = Type.Array(Type.String());
const optional = (schema: TSchema) => Type.Union([Type.Undefined(), Type.Null(), schema]);
const error = Type.Object({ errorClass: Type.String(), reason: Type.String(), message: Type.String() });
const convertible = Type.Object({ spec: Type.Unknown(), annotations: Type.Record(Type.String(), Type.String()) });
const condition = Type.Object({
  type: Type.String(),
  status: Type.Enum(["True", "False", "Unknown"]),
  reason: Type.String(),
  message: Type.String(),
});

const nothing = Compile(Type.Never());

/** What functions of kinds answer, by their names. */
const FUNCTIONS: Readonly<Record<string, ReturnType<typeof Compile>>> = {
  validate: Compile(Type.Unknown()),
  report: Compile(Type.Object({})),
  readyWhen: Compile(texts),
  conditions: Compile(Type.Array(condition)),
  selectorOf: Compile(Type.String()),
  keysOf: Compile(texts),
  name: Compile(optional(Type.String())),
  needsReconcile: Compile(texts),
  completed: Compile(texts),
  of: Compile(texts),
  withhold: Compile(Type.Object({ metadata: Type.Object({ name: Type.String() }), spec: Type.Unknown() })),
  toStored: Compile(convertible),
  fromStored: Compile(convertible),
};

const resource = Type.Object({
  type: Type.String(),
  name: Type.String(),
  inputs: Type.Optional(Type.Object({})),
  parent: Type.Optional(Type.Integer({ minimum: 0 })),
  dependsOn: Type.Optional(Type.Array(Type.Integer({ minimum: 0 }))),
  options: Type.Optional(Type.Object({})),
  aliasParents: Type.Optional(Type.Record(Type.String(), Type.Integer({ minimum: 0 }))),
});

export const answers = {
  description: Compile(
    Type.Object({
      /** Without those that are refused. */
      kinds: Type.Array(Type.Object({})),
      problems: texts,
      /** Those that were loaded, without what lies in `node_modules` and Kindstack's own. */
      files: texts,
    }),
  ),
  program: Compile(
    Type.Object({
      resources: Type.Array(Type.Unsafe<DeclaredResource>(resource)),
      /** Whether the program has looked at labels or annotations of its object. */
      looked: Type.Boolean(),
    }),
  ),
  sdkProgram: Compile(Type.Object({ looked: Type.Boolean() })),
  untracked: Compile(Type.Unsafe<string[] | undefined | null>(optional(texts))),
  maintain: Compile(
    Type.Object({
      requeueAfterMs: Type.Optional(Type.Union([Type.Undefined(), Type.Number()])),
      memory: Type.Unsafe<Map<string, unknown>>(Type.Object({})),
    }),
  ),
  drift: Compile(
    Type.Object({
      drifted: Type.Unsafe<Map<string, string>>(Type.Object({})),
      unknown: Type.Unsafe<Map<string, Type.Static<typeof error>>>(Type.Object({})),
    }),
  ),
};

type Answered<Schema> = Schema extends { Check(value: unknown): value is infer T } ? T : never;
export type Answer<Name extends keyof typeof answers> = Answered<(typeof answers)[Name]>;

/** @throws TypeError naming what has answered something else than it may */
export function parseAnswer<T>(schema: { Check(value: unknown): value is T }, value: unknown, what: string): T {
  if (schema.Check(value)) return value;
  throw new TypeError(`${what} returns something else than it must`);
}

/** Parses the answer of the function of a kind that is there. */
export function parseFunctionAnswer(path: FunctionPath, value: unknown, what: string): unknown {
  return parseAnswer(FUNCTIONS[String(path.at(-1))] ?? nothing, value, what) ?? undefined;
}
