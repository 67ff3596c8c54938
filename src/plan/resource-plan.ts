import Type from "typebox";
import { STEP_ACTIONS } from "../../stacks/contract/plan";

/** `--fail-on` evaluates a report, so unknown fields, which could change its meaning, are not allowed. */
export function closed<T extends Type.TProperties>(properties: T, options: Type.TObjectOptions = {}) {
  return Type.Object(properties, { ...options, additionalProperties: false });
}

/** What cannot be told because something could not be looked up: every gate fails on it. */
export const UNCHECKED = "unchecked";

const fieldSchema = closed({
  path: Type.String({ description: 'The field, such as `metadata.annotations["example.com/a"]`.' }),
  before: Type.Optional(
    Type.Unknown({
      description: "Its value now: in the state, or live where that was looked up; absent if the field is new.",
    }),
  ),
  after: Type.Optional(Type.Unknown({ description: "Its value after the update; absent if the field is removed." })),
});

export const resourceSchema = closed({
  name: Type.String({ description: "The resource's name in its stack." }),
  type: Type.String({ description: "Namespace, Row, …" }),
  operation: Type.Enum([...STEP_ACTIONS, UNCHECKED], {
    type: "string",
    description: "unchecked: what has its name could not be looked up; `notChecked` says why.",
  }),
  fields: Type.Array(fieldSchema, {
    description: "What an update or a replacement changes, and what is created. Secrets are hidden.",
  }),
  checked: Type.Optional(Type.Boolean({ description: "Whether the API server was asked, by a dry run." })),
  notChecked: Type.Optional(Type.String({ description: "Why it was not asked, or what could not be looked up." })),
  hidden: Type.Optional(
    Type.Boolean({ description: "Whether the caller may not `get` it: the fields are those of the program alone." }),
  ),
});

export type ResourcePlan = Type.Static<typeof resourceSchema>;
export type FieldChange = Type.Static<typeof fieldSchema>;
