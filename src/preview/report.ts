import Type from "typebox";
import { STEP_ACTIONS } from "../../stacks/contract/plan";

/*
 * What a preview found, as `--output json` prints it. The schema is published in docs/preview.schema.json.
 */

/** `--fail-on` evaluates a report, so unknown fields, which could change its meaning, are not allowed. */
function closed<T extends Type.TProperties>(properties: T, options: Type.TObjectOptions = {}) {
  return Type.Object(properties, { ...options, additionalProperties: false });
}

/** What can happen to a resource, which `--fail-on` takes. */
export const GATED = STEP_ACTIONS;
export type Gated = (typeof GATED)[number];

/** What cannot be told because something could not be looked up: every gate fails on it. */
export const UNCHECKED = "unchecked";

/** What `--fail-on` takes. */
export const GATES = [...GATED, UNCHECKED, "behind"] as const;
export type GateWord = (typeof GATES)[number];

/** Why a row is not checked by a dry run. */
export const NO_OBJECT = "it is not a Kubernetes object";

const fieldSchema = closed({
  path: Type.String({ description: 'The field, such as `metadata.annotations["example.com/a"]`.' }),
  before: Type.Optional(Type.Unknown({ description: "Its value in the state; absent if the field is new." })),
  after: Type.Optional(Type.Unknown({ description: "Its value after the update; absent if the field is removed." })),
});

const resourceSchema = closed({
  name: Type.String({ description: "The resource's name in its stack." }),
  type: Type.String({ description: "Namespace, Row, …" }),
  operation: Type.Enum([...GATED, UNCHECKED], {
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

const objectSchema = closed({
  apiVersion: Type.String(),
  kind: Type.String(),
  namespace: Type.Optional(Type.String()),
  name: Type.String(),
  file: Type.Optional(Type.String({ description: "Where the manifest is, or was." })),
  stack: Type.String({ description: "The name of the object's Pulumi stack." }),
  action: Type.Enum([...GATED, "none", "paused", "invalid", "failed", UNCHECKED], {
    type: "string",
    description:
      "What would happen to the object's stack. release, orphan: the object is deleted, its resources stay. paused: " +
      "nothing, until its pause ends; its resources are what would happen then. invalid: the API " +
      "server would refuse the object. failed: the update would fail, or could not be previewed. unchecked: it cannot " +
      "be told, as something could not be looked up; its resources are what is known.",
  }),
  validatedBy: Type.Optional(
    Type.Enum(["server", "schema"], {
      type: "string",
      description: "server: by a dry run. schema: by schema and rules, without admission.",
    }),
  ),
  notValidated: Type.Optional(Type.String({ description: "Why it was not sent to the API server as a dry run." })),
  resources: Type.Array(resourceSchema, { description: "Resources that would change." }),
  errors: Type.Array(Type.String(), { description: "Why it is invalid, failed or unchecked." }),
  notes: Type.Array(Type.String()),
  digest: Type.Optional(Type.String({ description: "Of the plan: what an approval names." })),
  group: Type.Optional(Type.String({ description: "The same for all objects with the same difference." })),
});

export const reportSchema = closed(
  {
    summary: Type.Record(Type.String(), Type.Integer({ minimum: 0 }), {
      description: "Number of objects of each action.",
    }),
    objects: Type.Array(objectSchema),
    problems: Type.Array(closed({ file: Type.String(), message: Type.String() }), {
      description: "Files that could not be read, and documents in them that cannot be told apart.",
    }),
    ignored: Type.Integer({ minimum: 0, description: "Objects of kinds that are not Kindstack's." }),
    notes: Type.Array(Type.String(), { description: "What limits the whole report." }),
    unchecked: Type.Array(Type.String(), {
      description: "What else could not be looked up; every gate fails.",
    }),
    behind: Type.Array(Type.String(), {
      description: "What HEAD lacks of the revision that it is compared with.",
    }),
    unseenDeletions: Type.Array(Type.String(), {
      description: "Why there may be deletions that the report lacks; a gate on deletions fails.",
    }),
  },
  { title: "Kindstack preview" },
);

export type Report = Type.Static<typeof reportSchema>;
export type ObjectPlan = Type.Static<typeof objectSchema>;
export type ResourcePlan = Type.Static<typeof resourceSchema>;
export type FieldChange = Type.Static<typeof fieldSchema>;
export type Action = ObjectPlan["action"];

export function countActions(actions: readonly Action[]): Report["summary"] {
  const counts: Report["summary"] = {};
  for (const action of actions) counts[action] = (counts[action] ?? 0) + 1;
  return counts;
}

/** The objects that would undergo one of these operations, or have a resource that would. */
export function gatedObjects({ objects }: Report, operations: readonly GateWord[]): ObjectPlan[] {
  const gated: readonly string[] = operations;
  return objects.filter(
    ({ action, resources }) => gated.includes(action) || resources.some(({ operation }) => gated.includes(operation)),
  );
}
