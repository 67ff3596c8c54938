import { isDeepStrictEqual } from "node:util";
import {
  EITHER,
  INT_OR_STRING,
  keptOf,
  type SchemaNode,
  type StructuralNode,
  type Translation,
  typeOf,
} from "./schema-node";

/** A union of literals, of a type and `null`, of objects, or of integer and string. */
export function union(node: SchemaNode, translation: Translation): StructuralNode {
  const translated = unionOfTypes(node, translation);
  if (translated.nullable !== true || translated.enum === undefined) return translated;
  return translation.refuse(
    "the API server takes no null where there are literals",
    "Type.Optional in place of Type.Null()",
  );
}

function unionOfTypes(node: SchemaNode, translation: Translation): StructuralNode {
  const { translate, refuse } = translation;
  const { anyOf, oneOf, ...own } = node;
  if (node[INT_OR_STRING] === true) return { ...(own as StructuralNode), anyOf: EITHER };
  const members = flattened((anyOf ?? oneOf) as readonly SchemaNode[]);
  const others = members.filter(({ type }) => type !== "null");
  const annotations = { ...keptOf(own), ...(others.length < members.length && { nullable: true }) };
  const [first] = others;
  if (first === undefined) return refuse("it can only be null", "a type");
  if (others.length === 1) return { ...translate(first), ...annotations };
  if (others.every((member) => "const" in member || member.enum !== undefined)) {
    const values = others.flatMap((member) => member.enum ?? [member.const]);
    const types = new Set(others.map(({ type }) => type));
    const type = types.size === 1 ? first.type : undefined;
    return translate({ ...annotations, ...(type && { type }), enum: [...new Set(values)] });
  }
  const types = new Set(others.map(typeOf));
  if (types.size === 1 && types.has("object")) return { ...unionOfObjects(others, translation), ...annotations };
  const isIntOrString = [...types].every((type) => type === "integer" || type === "string");
  if (isIntOrString && others.length === 2 && types.size === 2) {
    const parts = others.map((member) => translate(member));
    const { type: _, format: __, ...merged } = Object.assign({}, ...parts) as StructuralNode;
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

/** The fields of all forms, with the required fields and the literals of each form. */
function unionOfObjects(forms: readonly SchemaNode[], { translate, refuse }: Translation): StructuralNode {
  const translated = forms.map((form) => translate(form));
  const properties: Record<string, StructuralNode> = {};
  for (const [name, property] of translated.flatMap((form) => Object.entries(form.properties ?? {}))) {
    const known = properties[name];
    if (known === undefined || isDeepStrictEqual(known, property)) properties[name] = property;
    else if (known.enum && property.enum && known.type === property.type) {
      properties[name] = { ...known, enum: [...new Set([...known.enum, ...property.enum])] };
    } else refuse("it differs between the forms of a union", "fields of different names", `.${name}`);
  }
  const anyOf = translated.map(({ properties: own = {}, required }): StructuralNode => {
    const literals = Object.entries(own).flatMap(([name, { enum: values }]) =>
      values ? [[name, { enum: values }]] : [],
    );
    return {
      ...(required && { required }),
      ...(literals.length > 0 && { properties: Object.fromEntries(literals) }),
    };
  });
  const shared = translated.map((form) => form.required ?? []).reduce((a, b) => a.filter((name) => b.includes(name)));
  return { type: "object", properties, ...(shared.length > 0 && { required: shared }), anyOf };
}

/** An intersection of plain objects, which is an object. */
export function intersection({ allOf = [], ...own }: SchemaNode, { translate, refuse }: Translation): StructuralNode {
  const parts = allOf.map((part) => translate(part));
  if (!parts.every(({ type, anyOf }) => type === "object" && anyOf === undefined)) {
    return refuse("a CRD has no intersection of what are not plain objects", "Type.Object with all fields");
  }
  const properties: Record<string, StructuralNode> = {};
  for (const [name, property] of parts.flatMap((part) => Object.entries(part.properties ?? {}))) {
    if (properties[name] !== undefined && !isDeepStrictEqual(properties[name], property)) {
      refuse("it differs between the parts of an intersection", "it once", `.${name}`);
    }
    properties[name] = property;
  }
  const required = [...new Set(parts.flatMap((part) => part.required ?? []))];
  return { ...Object.assign({}, ...parts), properties, ...(required.length > 0 && { required }), ...keptOf(own) };
}
