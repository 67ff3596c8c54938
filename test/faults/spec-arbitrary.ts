import fc from "fast-check";

/** What the kinds' schemas are made of. */
export interface SpecSchema {
  type?: "object" | "array" | "string" | "boolean" | "integer";
  properties?: Record<string, SpecSchema>;
  required?: string[];
  additionalProperties?: SpecSchema;
  maxProperties?: number;
  items?: SpecSchema;
  minItems?: number;
  maxItems?: number;
  enum?: unknown[];
  pattern?: string;
  format?: string;
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  default?: unknown;
  "x-kubernetes-list-type"?: string;
  "x-kubernetes-int-or-string"?: true;
}

/**
 * Values of a field in place of what its schema says, by its path: `owner.name`, `namespaces.*` for each item and
 * each value of a map, `nodeSelector.~` for each key of one.
 */
export type Overrides = Readonly<Record<string, fc.Arbitrary<unknown>>>;

/** A value that its schema refuses, because of one field. */
export interface Broken {
  value: unknown;
  /** As the API server writes it: `spec.limitRanges[0].limits[0].type`. */
  field: string;
  /** In words. */
  fault: string;
}

/** More items and keys say nothing new. */
const MOST_ITEMS = 3;
const INT32 = 2 ** 31 - 1;

/** Values that a schema allows. */
export function validSpecs(schema: SpecSchema, overrides: Overrides = {}, path = ""): fc.Arbitrary<unknown> {
  const override = overrides[path];
  if (override !== undefined) return override;
  if (schema["x-kubernetes-int-or-string"]) {
    return fc.oneof(fc.integer({ min: schema.minimum ?? 0, max: 1_000 }), strings(schema));
  }
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
  switch (schema.type) {
    case "string":
      return strings(schema);
    case "boolean":
      return fc.boolean();
    case "integer":
      return fc.integer({ min: schema.minimum ?? -INT32, max: schema.maximum ?? INT32 });
    case "array":
      return items(schema, overrides, path);
    case "object":
      return schema.properties === undefined ? maps(schema, overrides, path) : records(schema, overrides, path);
    default:
      throw new TypeError(`${path}: nothing is known of ${JSON.stringify(schema)}`);
  }
}

/** Values that a schema allows but for one field. What surrounds that is as `overrides` has it. */
export function brokenSpecs(
  schema: SpecSchema,
  overrides: Overrides = {},
  path = "",
  field = "spec",
): fc.Arbitrary<Broken> {
  const here = faultsOf(schema, overrides, path).map(([fault, values]) =>
    values.map((value): Broken => ({ value, field, fault })),
  );
  return fc.oneof(...here, ...brokenParts(schema, overrides, path, field));
}

/** What is wrong with a value as a whole. */
function faultsOf(schema: SpecSchema, overrides: Overrides, path: string): [string, fc.Arbitrary<unknown>][] {
  const { type, minimum, maximum, minItems, maxItems, minLength, maxLength, pattern } = schema;
  const faults: [string, fc.Arbitrary<unknown>][] = [["is of the wrong type", wrongTypes(schema)]];
  const add = (fault: string, ...values: unknown[]) => faults.push([fault, fc.constantFrom(...values)]);
  if (schema["x-kubernetes-int-or-string"]) return faults;
  const { enum: allowed } = schema;
  if (allowed !== undefined)
    add("is none of those allowed", ...["Neither", ""].filter((value) => !allowed.includes(value)));
  if (type === "integer" && minimum !== undefined) add("is too small", minimum - 1, -INT32);
  if (type === "integer" && maximum !== undefined) add("is too large", maximum + 1, Number.MAX_SAFE_INTEGER);
  if (type === "string" && maxLength !== undefined) add("is too long", "a".repeat(maxLength + 1));
  if (type === "string" && minLength) add("is too short", "");
  if (type === "string" && pattern !== undefined) {
    const expression = new RegExp(pattern, "u");
    add("does not match", ...["", "\u0000", " ", "-", "a.b.c", "UPPER!"].filter((text) => !expression.test(text)));
  }
  if (type === "array" && minItems) add("has too few items", []);
  if (type === "array" && maxItems !== undefined && schema.items !== undefined) {
    const item = validSpecs(schema.items, overrides, below(path, "*"));
    faults.push(["has too many items", item.map((one) => Array.from({ length: maxItems + 1 }, () => one))]);
  }
  return faults;
}

function wrongTypes(schema: SpecSchema): fc.Arbitrary<unknown> {
  if (schema["x-kubernetes-int-or-string"]) return fc.constantFrom<unknown>(true, {}, []);
  const values: Record<string, unknown[]> = {
    integer: ["7", true, 1.5, {}],
    string: [7, true, {}, []],
    boolean: ["true", 1, {}],
    array: ["text", {}, 7],
    object: ["text", [], 7],
  };
  return fc.constantFrom(...(values[schema.type ?? "string"] as unknown[]));
}

/** What is wrong with a part of a value. */
function brokenParts(schema: SpecSchema, overrides: Overrides, path: string, field: string): fc.Arbitrary<Broken>[] {
  const { properties, required = [], additionalProperties, items: itemSchema } = schema;
  if (properties !== undefined) {
    const whole = validSpecs(schema, withoutOverride(overrides, path), path) as fc.Arbitrary<Record<string, unknown>>;
    return Object.entries(properties).flatMap(([name, property]) => {
      const inside = `${field}.${name}`;
      const broken = brokenSpecs(property, overrides, below(path, name), inside);
      const parts = [
        fc.tuple(whole, broken).map(([value, part]) => ({ ...part, value: { ...value, [name]: part.value } })),
      ];
      if (required.includes(name) && property.default === undefined) {
        parts.push(whole.map(({ [name]: _, ...rest }) => ({ value: rest, field: inside, fault: "is missing" })));
      }
      return parts;
    });
  }
  if (additionalProperties !== undefined) {
    const broken = brokenSpecs(additionalProperties, overrides, below(path, "*"), `${field}.key`);
    return [broken.map((part) => ({ ...part, value: { key: part.value } }))];
  }
  if (itemSchema !== undefined) {
    const item = below(path, "*");
    const broken = brokenSpecs(itemSchema, overrides, item, `${field}[0]`);
    const parts = [broken.map((part) => ({ ...part, value: [part.value] }))];
    if (schema["x-kubernetes-list-type"] === "set") {
      const twice = validSpecs(itemSchema, overrides, item);
      parts.push(twice.map((value) => ({ value: [value, value], field: `${field}[1]`, fault: "is there twice" })));
    }
    return parts;
  }
  return [];
}

function strings({ pattern, format, minLength = 0, maxLength = 64 }: SpecSchema): fc.Arbitrary<string> {
  if (format === "cidr") return fc.tuple(fc.ipV4(), fc.nat(32)).map(([address, bits]) => `${address}/${bits}`);
  if (pattern !== undefined) return fc.stringMatching(new RegExp(pattern, "u"), { maxLength });
  return fc.string({ minLength, maxLength, unit: "grapheme" }).filter((text) => text.length <= maxLength);
}

function items(schema: SpecSchema, overrides: Overrides, path: string): fc.Arbitrary<unknown[]> {
  const { items: item = {}, minItems = 0, maxItems = MOST_ITEMS } = schema;
  const length = { minLength: minItems, maxLength: Math.max(minItems, Math.min(maxItems, MOST_ITEMS)) };
  const values = validSpecs(item, overrides, below(path, "*"));
  return schema["x-kubernetes-list-type"] === "set"
    ? fc.uniqueArray(values, { ...length, selector: (value) => JSON.stringify(value) })
    : fc.array(values, length);
}

function maps(schema: SpecSchema, overrides: Overrides, path: string): fc.Arbitrary<Record<string, unknown>> {
  const keys = overrides[below(path, "~")] ?? fc.string({ minLength: 1, maxLength: 40 });
  const values = validSpecs(schema.additionalProperties ?? {}, overrides, below(path, "*"));
  return fc.dictionary(keys as fc.Arbitrary<string>, values, { maxKeys: MOST_ITEMS, noNullPrototype: true });
}

function records(schema: SpecSchema, overrides: Overrides, path: string): fc.Arbitrary<Record<string, unknown>> {
  const fields = Object.entries(schema.properties ?? {}).map(
    ([name, property]) => [name, validSpecs(property, overrides, below(path, name))] as const,
  );
  return fc.record(Object.fromEntries(fields), { requiredKeys: schema.required ?? [], noNullPrototype: true });
}

function withoutOverride(overrides: Overrides, path: string): Overrides {
  const { [path]: _, ...rest } = overrides;
  return rest;
}

function below(path: string, name: string): string {
  return path === "" ? name : `${path}.${name}`;
}
