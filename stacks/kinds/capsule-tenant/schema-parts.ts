import Type from "typebox";
import { type Amounts, QUANTITY } from "./quantity";

/*
 * What the schema of a Tenant is made of. Every list and every string has a bound: the API server counts the cost of the
 * rules with them, and refuses a CRD whose rules could take too long.
 */

export const text = (maxLength: number) => Type.String({ maxLength });
export const NAME = Type.String({ minLength: 1, maxLength: 253 });

export const oneOf = <const Values extends string[]>(values: readonly [...Values], description?: string) =>
  Type.Enum(values, { type: "string", ...(description && { description }) });

export const list = <Item extends Type.TSchema>(
  item: Item,
  maxItems: number,
  { description, ...options }: Type.TArrayOptions & { description?: string } = {},
) => Type.Optional(Type.Array(item, { ...(description && { description }), maxItems, ...options }));

export const SET = { "x-kubernetes-list-type": "set" };

export const rule = (rule: string, message: string) => ({ "x-kubernetes-validations": [{ rule, message }] });

export const optional = <Properties extends Type.TProperties>(properties: Properties, description: string) =>
  Type.Optional(Type.Object(properties, { description }));

export const flag = (description: string) => Type.Optional(Type.Boolean({ description }));

/** A map of strings; TypeBox's own records are written with a pattern, which CRDs do not know. */
export const stringMap = (options: Record<string, unknown> = {}) =>
  Type.Optional(
    Type.Unsafe<Record<string, string>>({
      type: "object",
      additionalProperties: { type: "string", maxLength: 4096 },
      maxProperties: 64,
      ...options,
    }),
  );

export const INT_OR_STRING = { anyOf: [{ type: "integer" }, { type: "string" }], "x-kubernetes-int-or-string": true };

export const amounts = (description: string) =>
  Type.Optional(
    Type.Unsafe<Amounts>({
      type: "object",
      description,
      additionalProperties: { ...INT_OR_STRING, maxLength: 64, minimum: 0, pattern: QUANTITY },
      maxProperties: 64,
    }),
  );

/** Requirements on something that `key` names. */
export const requirements = <Key extends Type.TProperties>(key: Key, maxItems: number, maxLength: number) =>
  list(
    Type.Object({
      ...key,
      operator: oneOf(["In", "NotIn", "Exists", "DoesNotExist"]),
      values: list(text(maxLength), 64),
    }),
    maxItems,
  );

export const labelSelector = (description: string) =>
  Type.Object(
    { matchLabels: stringMap(), matchExpressions: requirements({ key: text(317) }, 16, 63) },
    { description },
  );

const REGULAR_EXPRESSION = Type.Optional(
  Type.String({
    description: "A regular expression in RE2 syntax; an empty one matches nothing.",
    maxLength: 512,
    // An expression that does not compile is an error of the rule, which refuses the object; `||` would hide it.
    ...rule("''.matches(self) in [true, false]", "must be a regular expression in RE2's syntax"),
  }),
);

/** What may be used: what is named exactly, and what an expression matches. */
export const allowed = (description: string) =>
  optional({ allowed: list(text(253), 100), allowedRegex: REGULAR_EXPRESSION }, description);

/** What may not be used: what is named exactly, and what an expression matches. */
export const denied = (description: string) =>
  optional({ denied: list(text(317), 100), deniedRegex: REGULAR_EXPRESSION }, description);
