/** A node of a JSON schema, as TypeBox writes it. */
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

/** A node of a structural schema, as the API server reads it. */
export interface StructuralNode extends SchemaNode {
  type?: string;
  description?: string;
  properties?: Readonly<Record<string, StructuralNode>>;
  items?: StructuralNode;
  additionalProperties?: StructuralNode | boolean;
  "x-kubernetes-validations"?: readonly { rule: string; message?: string }[];
  "x-kubernetes-list-type"?: "atomic" | "set" | "map";
  "x-kubernetes-list-map-keys"?: readonly string[];
}

/** How a node is translated into one of a structural schema. */
export interface Translation {
  /** Translates a part of the node. @param below its path within the node */
  translate(part: SchemaNode, below?: string): StructuralNode;
  /** Notes what a CRD cannot have, and what to write instead. @returns what stands in its place */
  refuse(problem: string, instead: string, below?: string): StructuralNode;
}

export const SCALARS = ["string", "integer", "number", "boolean"];
export const PRESERVE = "x-kubernetes-preserve-unknown-fields";
export const INT_OR_STRING = "x-kubernetes-int-or-string";
/** The only union of types that the API server knows, in the only form that it takes. */
export const EITHER: readonly StructuralNode[] = [{ type: "integer" }, { type: "string" }];

/** What the API server checks in any node, and what it shows. */
const KEPT =
  /^(type|title|description|default|example|format|nullable|enum|pattern|minimum|maximum|(min|max)(Length|Items|Properties)|multipleOf|required|externalDocs|x-kubernetes-.*)$/;

export function isKept(keyword: string): boolean {
  return KEPT.test(keyword);
}

export function keptOf(node: SchemaNode): StructuralNode {
  return Object.fromEntries(Object.entries(node).filter(([keyword]) => isKept(keyword)));
}

/** The schema of a part of a value; `undefined` for a field that the value's own schema does not have. */
export function innerSchema(schema: StructuralNode, value: object, name: string): StructuralNode | undefined {
  const { properties = {}, items, additionalProperties } = schema;
  if (Array.isArray(value)) return items;
  if (Object.hasOwn(properties, name)) return properties[name];
  return typeof additionalProperties === "object" ? additionalProperties : undefined;
}

/** Of the literals of an `enum` or `const` where no type is written. */
export function typeOf({ type, enum: values, const: value }: SchemaNode): string | undefined {
  if (type !== undefined) return type as string;
  const types = [...new Set((values ?? (value === undefined ? [] : [value])).map((one) => typeof one))];
  return types.length === 1 && SCALARS.includes(types[0] as string) ? types[0] : undefined;
}
