import { Check } from "typebox/value";
import {
  EITHER,
  INT_OR_STRING,
  isKept,
  keptOf,
  PRESERVE,
  type SchemaNode,
  type StructuralNode,
  type Translation,
  typeOf,
} from "./schema-node";
import { TYPE_RULES } from "./schema-types";
import { intersection, union } from "./schema-unions";

/** What says nothing about which values are right. */
const DROPPED = ["$id", "$schema", "$comment", "examples", "readOnly", "writeOnly", "deprecated"];
const ANNOTATIONS = ["title", "description", "default", "nullable"];
/** Beside a type, they are the author's own. */
const COMBINATORS = ["anyOf", "oneOf", "allOf", "not"];
const MOST = Number.MAX_SAFE_INTEGER;

/** Each object of a file is held against its kind's, and to compile the patterns takes longer than all else. */
const structural = new WeakMap<object, StructuralNode>();

/**
 * The structural schema that a CRD has for a TypeBox schema: unions of literals become `enum`, records
 * `additionalProperties`, `null` `nullable`, and so on; docs/schemas.md lists them. A schema is translated once.
 *
 * @throws TypeError naming each field that a CRD cannot have, and what to write instead
 */
export function structuralSchema(schema: object, path: string): StructuralNode {
  const known = structural.get(schema);
  if (known !== undefined) return known;
  const problems: string[] = [];
  const translated = translate(schema as SchemaNode, path, problems);
  if (problems.length > 0) throw new TypeError(problems.join("; "));
  const exact = withExactNumbers(translated);
  structural.set(schema, exact);
  return exact;
}

/** JavaScript rounds integers beyond 2^53, so the API server refuses them. It takes no limit beyond a number's format. */
function withExactNumbers(node: StructuralNode): StructuralNode {
  const [least, most] = node.format === "int32" ? [-(2 ** 31), 2 ** 31 - 1] : [-MOST, MOST];
  const { type, enum: values, minimum = least, maximum = most, properties, items, additionalProperties } = node;
  const isNumber = type === "integer" || type === "number" || node[INT_OR_STRING] === true;
  const exact = Object.entries(properties ?? {}).map(([name, property]) => [name, withExactNumbers(property)]);
  return {
    ...node,
    ...(isNumber &&
      values === undefined && {
        minimum: Math.max(minimum as number, least),
        maximum: Math.min(maximum as number, most),
      }),
    ...(properties && { properties: Object.fromEntries(exact) }),
    ...(items && { items: withExactNumbers(items) }),
    ...(typeof additionalProperties === "object" && { additionalProperties: withExactNumbers(additionalProperties) }),
  };
}

function translate(node: SchemaNode, path: string, problems: string[]): StructuralNode {
  const refuse: Translation["refuse"] = (problem, instead, below = "") => {
    problems.push(`${path}${below}: ${problem}: write ${instead}`);
    return {};
  };
  const translation: Translation = {
    refuse,
    translate: (part, below = "") => translate(part, path + below, problems),
  };
  if ("~codec" in node) {
    return refuse("a codec is not applied", "the type that objects have, and convert it in the program");
  }
  if ("$ref" in node || "$defs" in node) {
    return refuse(
      "a CRD cannot be recursive",
      "Type.Unknown() where it recurs; the API server stores that part as it is",
    );
  }
  if (node.type === undefined && (node.anyOf ?? node.oneOf) !== undefined) return union(node, translation);
  if (node.type === undefined && node.allOf !== undefined) return intersection(node, translation);
  if (Array.isArray(node.type)) return union({ anyOf: node.type.map((type) => ({ ...node, type })) }, translation);
  const type = typeOf(node);
  const translated = keptOf(node);
  if (type === undefined) return untyped(node, translated, refuse);
  translated.type = type;
  if ("const" in node) translated.enum = [node.const];
  if ("default" in node && !Check(node, node.default)) {
    refuse(`the default ${JSON.stringify(node.default)} is not valid`, "one that has all that the schema requires");
  }
  const rule = TYPE_RULES[type];
  if (rule === undefined) {
    return refuse(`a CRD has no type ${type}`, type === "null" ? "Type.Union([…, Type.Null()])" : "a type of JSON");
  }
  const known = [...DROPPED, ...COMBINATORS, ...rule.keywords, "const"];
  for (const keyword of Object.keys(node)) {
    if (!isKept(keyword) && !known.includes(keyword)) {
      refuse(`a CRD has no ${keyword}`, "a rule in x-kubernetes-validations");
    }
  }
  for (const combinator of COMBINATORS) if (combinator in node) translated[combinator] = node[combinator];
  rule.fill(node, translated, translation);
  return translated;
}

function untyped(node: SchemaNode, translated: StructuralNode, refuse: Translation["refuse"]): StructuralNode {
  if (node[INT_OR_STRING] === true || node[PRESERVE] === true) return translated;
  const types = new Set(node.enum?.map((value) => typeof value));
  if (types.size === 2 && types.has("string") && types.has("number")) {
    return { ...translated, [INT_OR_STRING]: true, anyOf: EITHER };
  }
  const keywords = Object.keys(node).filter((keyword) => !ANNOTATIONS.includes(keyword) && !DROPPED.includes(keyword));
  if (keywords.length === 0) return { ...translated, [PRESERVE]: true }; // Type.Unknown(), Type.Any()
  if (node.enum !== undefined) return refuse("its values are of several types", "values of one type");
  return refuse(`a CRD has no ${keywords.join(", ")} without a type`, "a schema with a type");
}
