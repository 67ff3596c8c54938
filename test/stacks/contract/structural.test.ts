import Type, { type TSchema } from "typebox";
import { describe, expect, it } from "vitest";
import { structuralSchema } from "../../../stacks/contract/structural";

const inner = (schema: TSchema) => structuralSchema(Type.Object({ field: schema }), "spec").properties?.field;
const literals = (...values: (string | number)[]) => Type.Union(values.map((value) => Type.Literal(value)));
const text = { type: "string" };
const EITHER = { "x-kubernetes-int-or-string": true, anyOf: [{ type: "integer" }, { type: "string" }] };
const BY_KEY = { "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"] };
/** What JavaScript has exactly. */
const EXACT = { minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER };

it("translates a schema once, however often it is asked for", () => {
  const schema = Type.Object({ name: Type.String({ pattern: "^[a-z]+$" }) });
  expect(structuralSchema(schema, "v1.spec")).toBe(structuralSchema(schema, "spec"));
});

it.each<[string, TSchema, object]>([
  ["a literal", Type.Literal("a"), { type: "string", enum: ["a"] }],
  ["a union of literals", literals("a", "b"), { type: "string", enum: ["a", "b"] }],
  ["an enum without a type", Type.Enum(["a", "b"]), { type: "string", enum: ["a", "b"] }],
  ["an enum of numbers and strings", Type.Enum({ one: 1, two: "2" }), { enum: [1, "2"], ...EITHER }],
  [
    "a record",
    Type.Record(Type.String(), Type.Integer()),
    { type: "object", additionalProperties: { type: "integer", ...EXACT } },
  ],
  [
    "a record of literals",
    Type.Record(Type.Enum(["a"]), Type.String()),
    { type: "object", properties: { a: { type: "string" } }, required: ["a"] },
  ],
  [
    "a nullable type",
    Type.Union([Type.String({ maxLength: 3 }), Type.Null()]),
    { type: "string", maxLength: 3, nullable: true },
  ],
  [
    "a number with a format",
    Type.Integer({ format: "int32", minimum: 1 }),
    { type: "integer", format: "int32", minimum: 1, maximum: 2 ** 31 - 1 },
  ],
  [
    "an amount",
    Type.Union([Type.Integer({ minimum: 0 }), Type.String({ pattern: "^\\d+%$" })], { default: 1 }),
    { ...EXACT, minimum: 0, pattern: "^\\d+%$", default: 1, ...EITHER },
  ],
  [
    "anything",
    Type.Unknown({ description: "Any JSON." }),
    { description: "Any JSON.", "x-kubernetes-preserve-unknown-fields": true },
  ],
  [
    "unique items",
    Type.Array(Type.String(), { uniqueItems: true }),
    { type: "array", items: { type: "string" }, "x-kubernetes-list-type": "set" },
  ],
  [
    "an exclusive limit",
    Type.Number({ exclusiveMinimum: 0, minimum: -1 }),
    { type: "number", ...EXACT, minimum: 0, exclusiveMinimum: true },
  ],
  [
    "a limit that is stricter than the exclusive one",
    Type.Number({ exclusiveMaximum: 9, maximum: 5 }),
    { type: "number", ...EXACT, maximum: 5 },
  ],
  [
    "a limit beyond what JavaScript has exactly",
    Type.Integer({ minimum: 1, maximum: 2 ** 63, format: "int64" }),
    { type: "integer", format: "int64", ...EXACT, minimum: 1 },
  ],
  [
    "an object without further fields",
    Type.Object({ a: Type.String() }, { additionalProperties: false }),
    { type: "object", required: ["a"], properties: { a: { type: "string" } } },
  ],
  [
    "an intersection",
    Type.Intersect([Type.Object({ a: Type.String() }), Type.Object({ b: Type.Optional(Type.String()) })]),
    { type: "object", required: ["a"], properties: { a: text, b: text } },
  ],
  [
    "a union of objects",
    Type.Union([
      Type.Object({ from: Type.Literal("git"), url: Type.String() }),
      Type.Object({ from: Type.Literal("oci"), image: Type.String() }),
    ]),
    {
      type: "object",
      required: ["from"],
      properties: { from: { type: "string", enum: ["git", "oci"] }, url: text, image: text },
      anyOf: [
        { required: ["from", "url"], properties: { from: { enum: ["git"] } } },
        { required: ["from", "image"], properties: { from: { enum: ["oci"] } } },
      ],
    },
  ],
])("a schema of TypeBox becomes a structural one %s", (_, schema, structural) => {
  expect(inner(schema)).toEqual(structural);
});

describe("a schema that a CRD cannot have is refused with its field and what to write", () => {
  it.each<[string, TSchema, string]>([
    ["a tuple", Type.Tuple([Type.String(), Type.Integer()]), "a CRD has no tuples: write Type.Object"],
    [
      "a union of types",
      Type.Union([Type.String(), Type.Boolean()]),
      "a CRD has no union of string and boolean: write one type",
    ],
    ["null", Type.Null(), "a CRD has no type null: write Type.Union"],
    [
      "literals beside null",
      Type.Union([Type.Literal("a"), Type.Literal("b"), Type.Null()]),
      "the API server takes no null where there are literals: write Type.Optional in place of",
    ],
    [
      "recursion",
      Type.Cyclic({ A: Type.Object({ a: Type.Optional(Type.Ref("A")) }) }, "A"),
      "a CRD cannot be recursive: write Type.Unknown()",
    ],
    [
      "a record of a pattern",
      Type.Record(Type.String({ pattern: "^a" }), Type.String()),
      "a CRD cannot tie the names of fields to the pattern ^a: write",
    ],
    [
      "other fields beside named ones",
      Type.Object({ a: Type.String() }, { additionalProperties: Type.String() }),
      "a CRD cannot have named fields beside others: write",
    ],
    ["look-ahead", Type.String({ pattern: "^(?!a)" }), "the pattern ^(?!a) is not one of both RE2 and JavaScript"],
    ["a flag of RE2", Type.String({ pattern: "(?i)a" }), "the pattern (?i)a is not one of both"],
    [
      "a format",
      Type.String({ format: "iri" }),
      "the API server does not check the format iri: write a pattern, or one of",
    ],
    [
      "unique objects",
      Type.Array(Type.Object({ a: Type.String() }), { uniqueItems: true }),
      "a CRD cannot compare items: write x-kubernetes-list-type",
    ],
    ["a default that is not valid", Type.Integer({ default: 0, minimum: 1 }), "the default 0 is not valid: write one"],
    [
      "a map key that is optional",
      Type.Array(Type.Object({ a: Type.Optional(Type.String()) }), BY_KEY),
      "its items are told apart by a, which is optional",
    ],
    [
      "a keyword of JSON schema",
      Type.Array(Type.String(), { contains: { type: "string" } }),
      "a CRD has no contains: write a rule",
    ],
    [
      "a codec",
      Type.Codec(Type.String())
        .Decode((text) => text.length)
        .Encode(String),
      "a codec is not applied: write",
    ],
    ["a type of JavaScript", Type.BigInt(), "a CRD has no type bigint: write a type of JSON"],
  ])("%s", (_, schema, message) => {
    expect(() => inner(schema)).toThrow(`spec.field: ${message}`);
  });

  it("names all fields at once, wherever they are", () => {
    const list = Type.Array(Type.Object({ pair: Type.Tuple([Type.String()]) }));
    const both = Type.Object({ list, by: Type.Record(Type.String(), Type.Null()) });
    expect(() => structuralSchema(both, "spec")).toThrow(/spec\.list\.\*\.pair: .*; spec\.by\.\*: /);
  });
});
