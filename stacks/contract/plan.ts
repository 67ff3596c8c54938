import { hash } from "node:crypto";
import Type from "typebox";
import type { LiveObject, ObjectMeta } from "../../providers/kubernetes/client";

/*
 * A plan: what an update or a deletion of one object would do, which waits for an approval. One per object, in the object's
 * namespace; in the operator's for what has none, and for what is in a namespace that ends and takes no new objects.
 */

export const PLAN_TYPE = { apiVersion: "kindstack.dev/v1alpha1", kind: "Plan" } as const;

/**
 * What can be done to a resource. `adopt`: it exists already, and gets this owner. `move`: it has another name in the stack.
 * `hand-over`: another object of the same change releases it. `release`: Kindstack did not create it, so it stays. `orphan`: it
 * stays because the object says so.
 */
export const STEP_ACTIONS = [
  "create",
  "adopt",
  "update",
  "move",
  "hand-over",
  "replace",
  "delete",
  "release",
  "orphan",
] as const;
export type StepAction = (typeof STEP_ACTIONS)[number];

export const PLAN_STATES = ["Pending", "Applying", "Rejected"] as const;

/** Of a plan with more, `omitted` says how many there are. */
export const MAX_STEPS = 100;
export const MAX_STEP_FIELDS = 20;
export const MAX_VALUE = 256;
export const MAX_TEXT = 1024;
/** It may hold the SQL that ends it. */
export const MAX_REFUSAL = 4096;

export const digestSchema = Type.String({ pattern: "^sha256:[0-9a-f]{64}$", maxLength: 71 });
const time = Type.String({ format: "date-time" });
const name = Type.String({ minLength: 1, maxLength: 253 });
const text = Type.String({ maxLength: MAX_TEXT });
const count = Type.Integer({ minimum: 0 });
const value = (description: string) => Type.Optional(Type.String({ maxLength: MAX_VALUE, description }));

const stepSchema = Type.Object({
  action: Type.Enum([...STEP_ACTIONS], { type: "string" }),
  type: Type.String({ maxLength: 253, description: "Namespace, Row, …" }),
  name: Type.String({ maxLength: MAX_TEXT, description: "The resource's name in its stack." }),
  id: Type.Optional(Type.String({ maxLength: MAX_TEXT })),
  fields: Type.Array(
    Type.Object({
      path: Type.String({ maxLength: MAX_TEXT }),
      from: value("As JSON, cut where it is long; absent if the field is new. Secrets are [secret]."),
      to: value("As from; absent if the field is removed. What is not known before the update is [unknown]."),
    }),
    { maxItems: MAX_STEP_FIELDS },
  ),
  omittedFields: Type.Optional(count),
  refusal: Type.Optional(
    Type.String({ maxLength: MAX_REFUSAL, description: "Why the step would fail, as another owner has the resource." }),
  ),
  digest: digestSchema,
});

export const planSpecSchema = Type.Object({
  object: Type.Object(
    {
      apiVersion: Type.String({ maxLength: 253 }),
      kind: name,
      namespace: Type.Optional(name),
      name,
      uid: Type.String({ maxLength: 64 }),
      generation: Type.Integer({ minimum: 0, format: "int64" }),
    },
    { description: "What the plan is for, as it was planned." },
  ),
  digest: { ...digestSchema, description: "Of all that the plan depends on: what an approval names." },
  group: { ...digestSchema, description: "The same for all objects with the same difference." },
  cause: Type.Object({
    reason: Type.String({ maxLength: 64, description: "SpecChanged, ProgramChanged, Drifted, Created, Deleted, …" }),
    by: Type.Optional(text),
    at: time,
  }),
  actions: Type.Object(
    { create: count, update: count, replace: count, delete: count },
    { description: "How many resources, by what is done to them." },
  ),
  steps: Type.Array(stepSchema, { maxItems: MAX_STEPS, "x-kubernetes-list-type": "atomic" }),
  omitted: Type.Optional(Type.Integer({ minimum: 0, description: "How many steps more there are." })),
});

export const planStatusSchema = Type.Object({
  state: Type.Enum([...PLAN_STATES], { type: "string" }),
  message: Type.Optional(text),
  decidedBy: Type.Optional(text),
  decidedAt: Type.Optional(time),
});

export type PlanSpec = Type.Static<typeof planSpecSchema>;
export type PlanStatus = Type.Static<typeof planStatusSchema>;
export type PlanStep = Type.Static<typeof stepSchema>;
export type PlanField = PlanStep["fields"][number];

export type Plan = LiveObject & { spec: PlanSpec; status: PlanStatus };

/** A plan's name: readable, and unique by the object's UID. */
export function planName({ singular }: { singular: string }, { name, uid }: Pick<ObjectMeta, "name" | "uid">): string {
  const readable = name?.slice(0, 150).replace(/\.$/, ""); // no part of a name may begin with a hyphen
  return `${singular.slice(0, 63)}-${readable}-${hash("sha256", uid ?? "").slice(0, 8)}`;
}
