import { RetryableError } from "../../providers/errors";
import type { LiveObject } from "../../providers/kubernetes/client";
import { MASKED, NOT_KNOWN } from "../../providers/literal";
import { shortened } from "../../providers/shortened";
import { type AnyKind, kindName } from "../../stacks/contract/kind";
import { objectId } from "../../stacks/contract/object";
import {
  MAX_REFUSAL,
  MAX_STEP_FIELDS,
  MAX_STEPS,
  MAX_TEXT,
  MAX_VALUE,
  type Plan,
  type PlanField,
  type PlanSpec,
  type PlanStep,
  type StepAction,
} from "../../stacks/contract/plan";
import type { PlanDigests } from "./digest";
import { type PlannedResource, touchedObject } from "./effects";
import type { StackPlan } from "./plan";
import { type FieldChange, UNCHECKED } from "./resource-plan";

/** The counter of a plan for each action on a resource. Actions that leave the resource as it is are not counted. */
const COUNTED: Readonly<Partial<Record<StepAction, keyof PlanSpec["actions"]>>> = {
  create: "create",
  adopt: "update",
  update: "update",
  move: "update",
  "hand-over": "update",
  replace: "replace",
  delete: "delete",
};

export interface PlanEffects extends Pick<StackPlan, "resources" | "untracked"> {
  /** Why a step would fail, by URN. */
  refusals: ReadonlyMap<string, string>;
}

/** What a plan says it does, bounded; its digests are of everything. */
export function planContents(
  { resources, untracked, refusals }: PlanEffects,
  digests: PlanDigests,
): Pick<PlanSpec, "actions" | "steps" | "omitted"> {
  const steps = [
    ...resources.map((resource) => {
      const { urn } = resource.change;
      return stepOf(resource, digests.steps.get(urn) ?? "", refusals.get(urn));
    }),
    ...untracked.map((object) => untrackedStep(object, digests.steps.get(object.metadata.uid) ?? "")),
  ];
  const actions = { create: 0, update: 0, replace: 0, delete: 0 };
  for (const { action } of steps) {
    const counted = COUNTED[action];
    if (counted !== undefined) actions[counted]++;
  }
  const omitted = steps.length - MAX_STEPS;
  return { actions, steps: steps.slice(0, MAX_STEPS), ...(omitted > 0 && { omitted }) };
}

/** @throws RetryableError for what could not be looked up: no plan is made of it */
function stepOf({ change, shown }: PlannedResource, digest: string, refusal: string | undefined): PlanStep {
  if (shown.operation === UNCHECKED)
    throw new RetryableError("Unreachable", `cannot look up ${shown.name}: ${shown.notChecked}`);
  const id = touchedObject(change);
  const omitted = shown.fields.length - MAX_STEP_FIELDS;
  return {
    action: shown.operation,
    type: shown.type,
    name: shortened(shown.name, MAX_TEXT),
    ...(id !== undefined && { id: shortened(id, MAX_TEXT) }),
    // Who may read a plan need not be allowed to get what is not the object's yet.
    fields: shown.fields.slice(0, MAX_STEP_FIELDS).map(shown.operation === "adopt" ? withoutFrom : fieldOf),
    ...(omitted > 0 && { omittedFields: omitted }),
    ...(refusal !== undefined && { refusal: shortened(refusal, MAX_REFUSAL) }),
    digest,
  };
}

/** An update that was cut off has made it, and it is in no state. */
function untrackedStep(object: LiveObject, digest: string): PlanStep {
  const { name } = object.metadata;
  return { action: "delete", type: object.kind, name, id: shortened(objectId(object), MAX_TEXT), fields: [], digest };
}

function fieldOf({ path, before, after }: FieldChange): PlanField {
  return {
    path: shortened(path, MAX_TEXT),
    ...(before !== undefined && { from: shownValue(before) }),
    ...(after !== undefined && { to: shownValue(after) }),
  };
}

function withoutFrom(field: FieldChange): PlanField {
  const { from: _, ...others } = fieldOf(field);
  return others;
}

function shownValue(value: unknown): string {
  return value === MASKED || value === NOT_KNOWN ? value : shortened(JSON.stringify(value), MAX_VALUE);
}

/** The words after `kindstack approve` that name a plan, and this state of it alone. */
export function approvalWords(kind: AnyKind, { spec: { object, digest } }: Pick<Plan, "spec">): string {
  const namespace = object.namespace === undefined ? "" : ` -n ${object.namespace}`;
  return `${kindName(kind)} ${object.name}${namespace} --digest ${digest}`;
}
