import { isDeepStrictEqual } from "node:util";
import { RE2JS } from "re2js";
import { Check } from "typebox/value";
import { isServedFormat, SERVED_FORMATS } from "./formats";

/** A node of a JSON schema, as TypeBox writes it or as the API server reads it. */
export interface SchemaNode {
  type?: string | readonly string[];
  properties?: Readonly<Record<string, SchemaNode>>;
  required?: readonly string[];
  items?: SchemaNode | readonly SchemaNode[];
  enum?: readonly unknown[];
  const?: unknown;
  anyOf?: readonly SchemaNode[];
  allOf?: readonly SchemaNode[];
  patternProperties?: Readonly<Record<string, SchemaNode>>;
  additionalProperties?: SchemaNode | boolean;
  [keyword: string]: unknown;
}

/** What the API server checks in any node, and what it shows. */
const KEPT =
  /^(type|title|description|default|example|format|nullable|enum|pattern|minimum|maximum|(min|max)(Length|Items|Properties)|multipleOf|required|externalDocs|x-kubernetes-.*)$/;
/** What says nothing about which values are right. */
const DROPPED = new Set(["$id", "$schema", "$comment", "examples", "readOnly", "writeOnly", "deprecated"]);
const ANNOTATIONS = new Set(["title", "description", "default", "nullable"]);
const SCALARS = ["string", "integer", "number", "boolean"];
const PRESERVE = "x-kubernetes-preserve-unknown-fields";
const INT_OR_STRING = "x-kubernetes-int-or-string";
const MOST = Number.MAX_SAFE_INTEGER;
/** The only union of types that the API server knows, in the only form that it takes. */
const EITHER: readonly SchemaNode[] = [{ type: "integer" }, { type: "string" }];

/**
 * The structural schema that a CRD has for a TypeBox schema: unions of literals become `enum`, records
 * `additionalProperties`, `null` `nullable`, and so on; docs/schemas.md lists them.
 *
 * @param path of what the schema describes, such as `spec`
 * @throws TypeError naming each field that a CRD cannot have, and what to write instead
 */
export function structuralSchema(schema: object, path: string): SchemaNode {
  const problems: string[] = [];
  const translated = translate(schema as SchemaNode, path, problems);
  if (problems.length > 0) throw new TypeError(problems.join("; "));
  return withExactNumbers(translated);
}

/** JavaScript rounds integers beyond 2^53, so the API server refuses them. It takes no limit beyond a number's format. */
function withExactNumbers(node: SchemaNode): SchemaNode {
  const [least, most] = node.format === "int32" ? [-(2 ** 31), 2 ** 31 - 1] : [-MOST, MOST];
  const { type, enum: values, minimum = least, maximum = most, properties, items, additionalProperties } = node;
  const isNumber = type === "integer" || type === "number" || node[INT_OR_STRING] === true;
  return {
    ...node,
    ...(isNumber &&
      values === undefined && {
        minimum: Math.max(minimum as number, least),
        maximum: Math.min(maximum as number, most),
      }),
    ...(properties && { properties: mapValues(properties, withExactNumbers) }),
    ...(items && { items: withExactNumbers(items as SchemaNode) }),
    ...(typeof additionalProperties === "object" && { additionalProperties: withExactNumbers(additionalProperties) }),
  };
}

function mapValues<T>(record: Readonly<Record<string, T>>, change: (value: T) => T): Record<string, T> {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, change(value)]));
}

function translate(node: SchemaNode, path: string, problems: string[]): SchemaNode {
  const refuse = (problem: string, instead: string): SchemaNode => {
    problems.push(`${path}: ${problem}: write ${instead}`);
    return {};
  };
  if ("~codec" in node)
    return refuse("a codec is not applied", "the type that objects have, and convert it in the program");
  if ("$ref" in node || "$defs" in node) {
    return refuse(
      "a CRD cannot be recursive",
      "Type.Unknown() where it recurs; the API server stores that part as it is",
    );
  }
  if (node.type === undefined && (node.anyOf ?? node.oneOf) !== undefined) return union(node, path, problems);
  if (node.type === undefined && node.allOf !== undefined) return intersection(node, path, problems);
  if (Array.isArray(node.type)) {
    const members = node.type.map((type) => ({ ...node, type }));
    return union({ anyOf: members }, path, problems);
  }
  const type = typeOf(node);
  const translated: SchemaNode = {};
  for (const [keyword, value] of Object.entries(node)) {
    if (KEPT.test(keyword)) translated[keyword] = value;
  }
  if (type === undefined) return untyped(node, translated, refuse);
  translated.type = type;
  if ("const" in node) translated.enum = [node.const];
  if ("default" in node && !Check(node, node.default)) {
    refuse(`the default ${JSON.stringify(node.default)} is not valid`, "one that has all that the schema requires");
  }
  const handled = HANDLED[type];
  if (handled === undefined) {
    return refuse(`a CRD has no type ${type}`, type === "null" ? "Type.Union([…, Type.Null()])" : "a type of JSON");
  }
  const written = handled.keywords.test.bind(handled.keywords);
  for (const keyword of Object.keys(node)) {
    if (!KEPT.test(keyword) && !DROPPED.has(keyword) && keyword !== "const" && !written(keyword)) {
      refuse(`a CRD has no ${keyword}`, "a rule in x-kubernetes-validations");
    }
  }
  for (const combinator of ["anyOf", "oneOf", "allOf", "not"])
    if (combinator in node) translated[combinator] = node[combinator];
  handled.fill(node, translated, { path, problems, refuse });
  return translated;
}

interface Place {
  path: string;
  problems: string[];
  refuse(problem: string, instead: string): SchemaNode;
}

/** By type: the keywords besides those of all types, and how they are translated. Combinators beside a type are the author's own. */
const HANDLED: Readonly<
  Record<string, { keywords: RegExp; fill(node: SchemaNode, translated: SchemaNode, place: Place): void }>
> = {
  object: { keywords: /^(properties|additionalProperties|patternProperties|anyOf|oneOf|allOf|not)$/, fill: fillObject },
  array: { keywords: /^(items|uniqueItems|additionalItems|anyOf|oneOf|allOf|not)$/, fill: fillArray },
  string: { keywords: /^(anyOf|oneOf|allOf|not)$/, fill: fillString },
  integer: { keywords: /^(exclusiveMinimum|exclusiveMaximum|anyOf|oneOf|allOf|not)$/, fill: fillNumber },
  number: { keywords: /^(exclusiveMinimum|exclusiveMaximum|anyOf|oneOf|allOf|not)$/, fill: fillNumber },
  boolean: { keywords: /^(anyOf|oneOf|allOf|not)$/, fill: () => {} },
};

/** Of the literals of an `enum` or `const` where no type is written. */
function typeOf({ type, enum: values, const: value }: SchemaNode): string | undefined {
  if (type !== undefined) return type as string;
  const types = [...new Set((values ?? (value === undefined ? [] : [value])).map((one) => typeof one))];
  return types.length === 1 && SCALARS.includes(types[0] as string) ? types[0] : undefined;
}

function untyped(node: SchemaNode, translated: SchemaNode, refuse: Place["refuse"]): SchemaNode {
  if (node[INT_OR_STRING] === true || node[PRESERVE] === true) return translated;
  const types = new Set(node.enum?.map((value) => typeof value));
  if (types.size === 2 && types.has("string") && types.has("number"))
    return { ...translated, [INT_OR_STRING]: true, anyOf: EITHER };
  const keywords = Object.keys(node).filter((keyword) => !ANNOTATIONS.has(keyword) && !DROPPED.has(keyword));
  if (keywords.length === 0) return { ...translated, [PRESERVE]: true }; // Type.Unknown(), Type.Any()
  if (node.enum !== undefined) return refuse("its values are of several types", "values of one type");
  return refuse(`a CRD has no ${keywords.join(", ")} without a type`, "a schema with a type");
}

function fillObject(node: SchemaNode, translated: SchemaNode, { path, problems, refuse }: Place): void {
  const { properties, patternProperties, additionalProperties } = node;
  const hasProperties = Object.keys(properties ?? {}).length > 0;
  if (properties !== undefined) {
    translated.properties = Object.fromEntries(
      Object.entries(properties).map(([name, property]) => [name, translate(property, `${path}.${name}`, problems)]),
    );
  }
  const patterns = Object.keys(patternProperties ?? {});
  if (patterns.some((pattern) => pattern !== "^.*$")) {
    refuse(
      `a CRD cannot tie the names of fields to the pattern ${patterns[0]}`,
      "Type.Record(Type.String(), …, { maxProperties: 100 }) with the rule self.all(name, name.matches('…'))",
    );
    return;
  }
  const values = patternProperties?.["^.*$"] ?? additionalProperties;
  if (typeof values === "object") {
    if (hasProperties) refuse("a CRD cannot have named fields beside others", "a field of its own for the Type.Record");
    else translated.additionalProperties = translate(values, `${path}.*`, problems);
  } else if (values === true) translated[PRESERVE] = true;
  // `additionalProperties: false`: the API server drops unknown fields, or refuses them if it is asked to.
}

function fillArray(node: SchemaNode, translated: SchemaNode, { path, problems, refuse }: Place): void {
  const { items, uniqueItems } = node;
  if (items === undefined || Array.isArray(items)) {
    refuse("a CRD has no tuples", "Type.Object with a field for each item");
    return;
  }
  const inner = translate(items as SchemaNode, `${path}.*`, problems);
  translated.items = inner;
  const keys = (node["x-kubernetes-list-map-keys"] as readonly string[] | undefined) ?? [];
  for (const key of keys) {
    const known = inner.properties?.[key];
    if (known === undefined || !SCALARS.includes(known.type as string)) {
      refuse(
        `its items have no field ${key} to be told apart by`,
        "the name of a string, number or boolean of the items",
      );
    } else if (!inner.required?.includes(key) && !("default" in known)) {
      refuse(`its items are told apart by ${key}, which is optional`, "it without Type.Optional, or with a default");
    }
  }
  if (uniqueItems !== true) return;
  if (SCALARS.includes(inner.type as string)) translated["x-kubernetes-list-type"] = "set";
  else refuse("a CRD cannot compare items", 'x-kubernetes-list-type: "map" with x-kubernetes-list-map-keys');
}

function fillString({ format, pattern }: SchemaNode, _: SchemaNode, { refuse }: Place): void {
  if (format !== undefined && !isServedFormat(format as string)) {
    refuse(`the API server does not check the format ${format}`, `a pattern, or one of ${SERVED_FORMATS.join(", ")}`);
  }
  if (pattern === undefined) return;
  try {
    RE2JS.compile(pattern as string);
    new RegExp(pattern as string, "u");
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    refuse(
      `the pattern ${pattern} is not one of both RE2 and JavaScript (${reason})`,
      "it without look-around and back-references, or a rule in x-kubernetes-validations",
    );
  }
}

/** An exclusive limit is a number in JSON schema, and a flag of the limit in a CRD. */
function fillNumber(node: SchemaNode, translated: SchemaNode, { refuse }: Place): void {
  const formats = node.type === "integer" ? ["int32", "int64"] : ["float", "double"];
  if (node.format !== undefined && !formats.includes(node.format as string)) {
    refuse(`the API server does not check the format ${node.format}`, formats.join(" or "));
  }
  for (const [limit, exclusive, sign] of [
    ["minimum", "exclusiveMinimum", 1],
    ["maximum", "exclusiveMaximum", -1],
  ] as const) {
    const value = node[exclusive];
    if (typeof value === "boolean") translated[exclusive] = value;
    if (typeof value !== "number") continue;
    const other = node[limit];
    if (typeof other === "number" && sign * other > sign * value) continue;
    translated[limit] = value;
    translated[exclusive] = true;
  }
}

function union(node: SchemaNode, path: string, problems: string[]): SchemaNode {
  const translated = unionOfTypes(node, path, problems);
  if (translated.nullable !== true || translated.enum === undefined) return translated;
  problems.push(
    `${path}: the API server takes no null where there are literals: write Type.Optional in place of Type.Null()`,
  );
  return {};
}

function unionOfTypes(node: SchemaNode, path: string, problems: string[]): SchemaNode {
  const refuse = (problem: string, instead: string): SchemaNode => {
    problems.push(`${path}: ${problem}: write ${instead}`);
    return {};
  };
  const { anyOf, oneOf, ...own } = node;
  if (node[INT_OR_STRING] === true) return { ...own, anyOf: EITHER };
  const members = flattened((anyOf ?? oneOf) as readonly SchemaNode[]);
  const others = members.filter(({ type }) => type !== "null");
  const annotations = {
    ...Object.fromEntries(Object.entries(own).filter(([keyword]) => KEPT.test(keyword))),
    ...(others.length < members.length && { nullable: true }),
  };
  const [first] = others;
  if (first === undefined) return refuse("it can only be null", "a type");
  if (others.length === 1) return { ...translate(first, path, problems), ...annotations };
  if (others.every((member) => "const" in member || member.enum !== undefined)) {
    const values = others.flatMap((member) => member.enum ?? [member.const]);
    const types = new Set(others.map(({ type }) => type));
    const type = types.size === 1 ? first.type : undefined;
    return translate({ ...annotations, ...(type && { type }), enum: [...new Set(values)] }, path, problems);
  }
  const types = new Set(others.map(typeOf));
  if (types.size === 1 && types.has("object")) return { ...unionOfObjects(others, path, problems), ...annotations };
  const isIntOrString = [...types].every((type) => type === "integer" || type === "string");
  if (isIntOrString && others.length === 2 && types.size === 2) {
    const parts = others.map((member) => translate(member, path, problems));
    const { type: _, format: __, ...merged } = Object.assign({}, ...parts) as SchemaNode;
    return { ...merged, ...annotations, [INT_OR_STRING]: true, anyOf: EITHER };
  }
  return refuse(
    `a CRD has no union of ${others.map(({ type = "anything" }) => type).join(" and ")}`,
    "one type, Type.Unknown() with a check in validate, or an object with an optional field for each form",
  );
}

function flattened(members: readonly SchemaNode[]): SchemaNode[] {
  return members.flatMap((member) => (member.anyOf && member.type === undefined ? flattened(member.anyOf) : [member]));
}

/** All fields of all forms, and for each form, which of them it requires and what its literals are. */
function unionOfObjects(forms: readonly SchemaNode[], path: string, problems: string[]): SchemaNode {
  const translated = forms.map((form) => translate(form, path, problems));
  const properties: Record<string, SchemaNode> = {};
  for (const form of translated) {
    for (const [name, property] of Object.entries(form.properties ?? {})) {
      const known = properties[name];
      if (known === undefined || isDeepStrictEqual(known, property)) properties[name] = property;
      else if (known.enum && property.enum && known.type === property.type) {
        properties[name] = { ...known, enum: [...new Set([...known.enum, ...property.enum])] };
      } else {
        problems.push(`${path}.${name}: it differs between the forms of a union: write fields of different names`);
      }
    }
  }
  const anyOf = translated.map(({ properties: own = {}, required }) => {
    const literals = Object.entries(own).flatMap(([name, { enum: values }]) =>
      values ? [[name, { enum: values }]] : [],
    );
    return {
      ...(required && { required }),
      ...(literals.length > 0 && { properties: Object.fromEntries(literals) as Record<string, SchemaNode> }),
    };
  });
  const shared = translated.map((form) => form.required ?? []).reduce((a, b) => a.filter((name) => b.includes(name)));
  return { type: "object", properties, ...(shared.length > 0 && { required: shared }), anyOf };
}

function intersection(node: SchemaNode, path: string, problems: string[]): SchemaNode {
  const { allOf = [], ...own } = node;
  const parts = allOf.map((part) => translate(part, path, problems));
  if (!parts.every(({ type, anyOf }) => type === "object" && anyOf === undefined)) {
    problems.push(
      `${path}: a CRD has no intersection of what are not plain objects: write Type.Object with all fields`,
    );
    return {};
  }
  const properties: Record<string, SchemaNode> = {};
  for (const part of parts) {
    for (const [name, property] of Object.entries(part.properties ?? {})) {
      if (properties[name] !== undefined && !isDeepStrictEqual(properties[name], property)) {
        problems.push(`${path}.${name}: it differs between the parts of an intersection: write it once`);
      }
      properties[name] = property;
    }
  }
  const required = [...new Set(parts.flatMap((part) => part.required ?? []))];
  const annotations = Object.fromEntries(Object.entries(own).filter(([keyword]) => KEPT.test(keyword)));
  return { ...Object.assign({}, ...parts), properties, ...(required.length > 0 && { required }), ...annotations };
}
