import type { AnyKind } from "../../stacks/contract/kind";
import { objectKey } from "../../stacks/contract/object";
import type { Plan, PlanField } from "../../stacks/contract/plan";
import type { FieldChange } from "../plan/resource-plan";
import { readJson } from "../text/json";
import { type Action, countActions, newPlan, type ObjectPlan, type Report } from "./report";

/** What a plan does, as a preview tells it. */
export function planReport(kind: AnyKind, plan: Plan): Report {
  const object = objectPlan(kind, plan);
  return {
    summary: countActions([object.action]),
    objects: [object],
    problems: [],
    ignored: 0,
    notes: [],
    unchecked: [],
    behind: [],
    unseenDeletions: [],
  };
}

/** The same, as the one object of a report. */
export function objectPlan(kind: AnyKind, { spec, status }: Plan): ObjectPlan {
  const { by, at, reason } = spec.cause;
  const omitted = spec.omitted ?? 0;
  return {
    ...newPlan(kind, spec.object.apiVersion, spec.object),
    action: actionOf(spec),
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

function actionOf({ cause, actions }: Plan["spec"]): Action {
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
