import Type from "typebox";
import type { AnyKind } from "../../stacks/contract/kind";
import { objectKey, stackName } from "../../stacks/contract/object";
import { type Plan, type PlanField, STEP_ACTIONS } from "../../stacks/contract/plan";
import { closed, type FieldChange, type ResourcePlan, resourceSchema, UNCHECKED } from "../plan/resource-plan";
import { readJson } from "../text/json";

/*
 * What a preview found, as `--output json` prints it. The schema is published in docs/preview.schema.json.
 */

/** What `--fail-on` takes. */
export const FAIL_ON_WORDS = [...STEP_ACTIONS, UNCHECKED, "behind"] as const;
export type FailOnWord = (typeof FAIL_ON_WORDS)[number];

/** Why a row is not checked by a dry run. */
export const NO_OBJECT = "it is not a Kubernetes object";

const actionSchema = Type.Enum([...STEP_ACTIONS, "none", "paused", "invalid", "failed", UNCHECKED], {
  type: "string",
  description:
    "What would happen to the object's stack. release, orphan: the object is deleted, its resources stay. paused: " +
    "nothing, until its pause ends; its resources are what would happen then. invalid: the API " +
    "server would refuse the object, now or at its next change; its resources are what would happen all the same. failed: the update would fail, or could not be previewed. unchecked: it cannot " +
    "be told, as something could not be looked up; its resources are what is known.",
});

const objectSchema = closed({
  apiVersion: Type.String(),
  kind: Type.String(),
  namespace: Type.Optional(Type.String()),
  name: Type.String(),
  file: Type.Optional(Type.String({ description: "Where the manifest is, or was." })),
  stack: Type.String({ description: "The name of the object's Pulumi stack." }),
  action: actionSchema,
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

const differenceSchema = closed({
  kind: Type.String(),
  action: actionSchema,
  objects: Type.Array(Type.String(), { description: "`<namespace>/<name>`, or the name of what has no namespace." }),
  resources: Type.Array(
    closed({
      operation: resourceSchema.properties.operation,
      type: resourceSchema.properties.type,
      count: Type.Integer({ minimum: 1, description: "The number of such resources of each object." }),
      fields: Type.Array(resourceSchema.properties.fields.items, {
        description: "Which fields differ; their values, where these are the same for all objects.",
      }),
      notChecked: Type.Optional(Type.String({ description: "Why it is unchecked." })),
    }),
  ),
  errors: Type.Array(Type.String(), { description: "As the first of the objects has them." }),
  notes: Type.Array(Type.String(), { description: "As the first of the objects has them." }),
});

export const reportSchema = closed(
  {
    summary: Type.Record(Type.String(), Type.Integer({ minimum: 0 }), {
      description: "Number of objects of each action.",
    }),
    objects: Type.Array(objectSchema),
    differences: Type.Optional(
      Type.Array(differenceSchema, {
        description: "The objects by what would happen to them, in a report on all objects of kinds.",
      }),
    ),
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
export type Difference = Type.Static<typeof differenceSchema>;
export type ObjectPlan = Type.Static<typeof objectSchema>;
export type Action = ObjectPlan["action"];

/** The plan of an object before anything is found out. */
export function newPlan(
  kind: AnyKind,
  apiVersion: string,
  { namespace, name }: { namespace?: string; name: string },
  file?: string,
): ObjectPlan {
  const names = { ...(namespace !== undefined && { namespace }), name };
  const source = { apiVersion, kind: kind.kind, ...names, ...(file !== undefined && { file }) };
  const nothing = { action: "none" as const, resources: [], errors: [], notes: [] };
  return { ...source, stack: stackName(kind, objectKey(names)), ...nothing };
}

/** The action of an object that exists: to replace, where one of its resources is replaced. */
export function actionOf(resources: readonly ResourcePlan[]): Action {
  if (resources.some(({ operation }) => operation === "replace")) return "replace";
  return resources.length > 0 ? "update" : "none";
}

/** A report that tells of these objects and of nothing else. */
export function newReport(objects: ObjectPlan[]): Report {
  const none = { problems: [], ignored: 0, notes: [], unchecked: [], behind: [], unseenDeletions: [] };
  return { summary: countActions(objects.map(({ action }) => action)), objects, ...none };
}

export function countActions(actions: readonly Action[]): Report["summary"] {
  const counts: Report["summary"] = {};
  for (const action of actions) counts[action] = (counts[action] ?? 0) + 1;
  return counts;
}

/** The objects that would undergo one of these operations, or have a resource that would. */
export function objectsToFailOn({ objects }: Report, operations: readonly FailOnWord[]): ObjectPlan[] {
  const gated: readonly string[] = operations;
  return objects.filter(
    ({ action, resources }) => gated.includes(action) || resources.some(({ operation }) => gated.includes(operation)),
  );
}

/** What a plan does, as a preview tells it. */
export function planReport(kind: AnyKind, plan: Plan): Report {
  return newReport([objectPlan(kind, plan)]);
}

/** The same, as the one object of a report. */
export function objectPlan(kind: AnyKind, { spec, status }: Plan): ObjectPlan {
  const { by, at, reason } = spec.cause;
  const omitted = spec.omitted ?? 0;
  return {
    ...newPlan(kind, spec.object.apiVersion, spec.object),
    action: plannedAction(spec),
    errors: spec.steps.flatMap(({ refusal }) => refusal ?? []),
    resources: spec.steps.map(({ action, type, name, fields }) => ({
      name,
      type,
      operation: action,
      fields: fields.map(fieldOf),
    })),
    notes: [
      ...spec.steps.flatMap(({ type, name, omittedFields = 0 }) =>
        omittedFields > 0 ? [`${omittedFields} more fields of ${type} ${name}`] : [],
      ),
      ...(omitted > 0 ? [`${omitted} more resources`] : []),
      `${status.state.toLowerCase()}${status.message === undefined ? "" : `: ${status.message}`}`,
      `planned ${at} because of ${reason}${by === undefined ? "" : ` by ${by}`}`,
    ],
    digest: spec.digest,
    group: spec.group,
  };
}

function plannedAction({ cause, actions, steps }: Plan["spec"]): Action {
  if (steps.some(({ refusal }) => refusal !== undefined)) return "failed";
  if (cause.reason === "Deleted") return "delete";
  if (cause.reason === "Created") return "create";
  return actions.replace > 0 ? "replace" : "update";
}

function fieldOf({ path, from, to }: PlanField): FieldChange {
  return {
    path,
    ...(from !== undefined && { before: parsed(from) }),
    ...(to !== undefined && { after: parsed(to) }),
  };
}

/** Values are JSON, but for `[secret]`, `[unknown]`, and what was cut. */
function parsed(text: string): unknown {
  const value = readJson(text);
  return value === undefined ? text : value;
}

/** `PodSet default/web` */
export function planTitle({ spec: { object } }: Plan): string {
  return `${object.kind} ${objectKey(object)}`;
}
