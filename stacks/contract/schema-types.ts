import { isIPv4, isIPv6 } from "node:net";
import { RE2JS } from "re2js";
import Format from "typebox/format";
import { errorMessageOf } from "../../providers/errors";
import { PRESERVE, SCALARS, type SchemaNode, type StructuralNode, type Translation } from "./schema-node";

interface TypeRule {
  /** Keywords besides those of all types. */
  keywords: readonly string[];
  /** Translates them. */
  fill(node: SchemaNode, translated: StructuralNode, translation: Translation): void;
}

export const TYPE_RULES: Readonly<Record<string, TypeRule>> = {
  object: { keywords: ["properties", "additionalProperties", "patternProperties"], fill: fillObject },
  array: { keywords: ["items", "uniqueItems", "additionalItems"], fill: fillArray },
  string: { keywords: [], fill: fillString },
  integer: { keywords: ["exclusiveMinimum", "exclusiveMaximum"], fill: fillNumber },
  number: { keywords: ["exclusiveMinimum", "exclusiveMaximum"], fill: fillNumber },
  boolean: { keywords: [], fill: () => {} },
};

function fillObject(node: SchemaNode, translated: StructuralNode, { translate, refuse }: Translation): void {
  const { properties, patternProperties, additionalProperties } = node;
  const hasProperties = Object.keys(properties ?? {}).length > 0;
  if (properties !== undefined) {
    translated.properties = Object.fromEntries(
      Object.entries(properties).map(([name, property]) => [name, translate(property, `.${name}`)]),
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
    else translated.additionalProperties = translate(values, ".*");
  } else if (values === true) translated[PRESERVE] = true;
  // `additionalProperties: false`: the API server drops unknown fields, or refuses them if it is asked to.
}

function fillArray(node: SchemaNode, translated: StructuralNode, { translate, refuse }: Translation): void {
  const { items, uniqueItems } = node;
  if (items === undefined || Array.isArray(items)) {
    refuse("a CRD has no tuples", "Type.Object with a field for each item");
    return;
  }
  const inner = translate(items as SchemaNode, ".*");
  translated.items = inner;
  for (const key of translated["x-kubernetes-list-map-keys"] ?? []) {
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

function fillString({ format, pattern }: SchemaNode, _: StructuralNode, { refuse }: Translation): void {
  if (format !== undefined && !isServedFormat(format as string)) {
    refuse(`the API server does not check the format ${format}`, `a pattern, or one of ${SERVED_FORMATS.join(", ")}`);
  }
  if (pattern === undefined) return;
  try {
    RE2JS.compile(pattern as string);
    new RegExp(pattern as string, "u");
  } catch (error) {
    refuse(
      `the pattern ${pattern} is not one of both RE2 and JavaScript (${errorMessageOf(error)})`,
      "it without look-around and back-references, or a rule in x-kubernetes-validations",
    );
  }
}

/** An exclusive limit is a number in JSON schema, and a flag of the limit in a CRD. */
function fillNumber(node: SchemaNode, translated: StructuralNode, { refuse }: Translation): void {
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

/*
 * The API server reads some formats of a text otherwise than JSON schema does. An operator must not refuse what the API server
 * has accepted, so the formats that both know are checked here as there, or more loosely.
 */

const UUID = /^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i;
/** Go's `time.ParseDuration`. */
const DURATION = /^[+-]?(0|((\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h))+)$/;
/** Scala's: `2 weeks`. */
const DURATION_IN_WORDS =
  /\d+\s*(ns|nano[a-z]*|us|µs|micro[a-z]*|ms|milli[a-z]*|s|sec[a-z]*|m|min[a-z]*|h|hr|hour[a-z]*|d|day[a-z]*|w|wk|week[a-z]*)(?![a-zµ])/i;
const DATE_TIME = /^\d{4}-\d\d-\d\dt([01]\d|2[0-3]):[0-5]\d:[0-5]\d(.\d+)?(z|[+-]\d\d:\d\d)$/i;
const HOSTNAME =
  /^([a-z0-9\p{S}\p{L}](-?[a-z0-9\p{S}\p{L}]{0,62})?|([a-z0-9\p{S}\p{L}]([a-z0-9\-\p{S}\p{L}]{0,61}[a-z0-9\p{S}\p{L}])?\.)+[a-z\p{L}]{2,63})$/iu;
const URI = /^(\/|[a-z][a-z0-9+.-]*:)/i;

const CHECKS: Readonly<Record<string, (text: string) => boolean>> = {
  uuid: (text) => UUID.test(text),
  duration: (text) => DURATION.test(text) || DURATION_IN_WORDS.test(text),
  "date-time": (text) => DATE_TIME.test(text),
  email: (text) => /.@./s.test(text),
  hostname: (text) => HOSTNAME.test(text),
  ipv4: (text) => text.includes(".") && (isIPv4(text.replace(/\b0+(?=\d)/g, "")) || isIPv6(text)),
  ipv6: (text) => isIPv6(text) && !text.includes("%"),
  uri: (text) => URI.test(text),
};
for (const [name, check] of Object.entries(CHECKS)) Format.Set(name, check);

/** The formats of a text that every supported API server checks; it ignores all others. */
const SERVED_FORMATS: readonly string[] = [
  ...Object.keys(CHECKS),
  ...["date", "cidr", "mac", "uuid3", "uuid4", "uuid5", "byte", "password", "bsonobjectid", "isbn", "isbn10", "isbn13"],
  ...["creditcard", "ssn", "hexcolor", "rgbcolor"],
];

/** The API server ignores dashes in a format's name. */
function isServedFormat(format: string): boolean {
  const plain = (name: string) => name.replaceAll("-", "");
  return SERVED_FORMATS.some((served) => plain(served) === plain(format)) || /^k8s-(short|long)-name$/.test(format);
}
