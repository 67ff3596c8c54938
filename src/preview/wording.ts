import { isDeepStrictEqual } from "node:util";
import { objectKey } from "../../stacks/contract/object";
import { type FieldChange, type ResourcePlan, UNCHECKED } from "../plan/resource-plan";
import { shortChange, shortValue } from "../text/plain-text";
import { NO_RIGHT } from "./cluster-view";
import { type Action, countActions, type Difference, NO_OBJECT, type ObjectPlan, type Report } from "./report";

/** Actions in the order in which they matter to a reader. */
const WORDS: Readonly<Record<Action, string>> = {
  invalid: "invalid",
  failed: "failed",
  unchecked: "unchecked",
  delete: "to delete",
  replace: "to replace",
  adopt: "to adopt",
  "hand-over": "to hand over",
  release: "to release",
  orphan: "to orphan",
  move: "to move",
  update: "to update",
  create: "to create",
  paused: "paused",
  none: "unchanged",
};
const ACTIONS = Object.keys(WORDS);

/** `1 to delete, 2 to update, 3 unchanged, 4 of other kinds` */
export function describeSummary({ summary, problems, ignored }: Report): string {
  const parts = describeCounts(summary);
  if (problems.length > 0) parts.push(`${counted(problems.length, "file")} unreadable`);
  if (ignored > 0) parts.push(`${ignored} of other kinds`);
  return parts.join(", ") || "no objects";
}

/** `1 to create, 2 to update`: what happens to an object's resources. */
export function describeResources({ resources }: ObjectPlan): string {
  return describeCounts(countActions(resources.map(({ operation }) => operation))).join(", ");
}

function describeCounts(counts: Report["summary"]): string[] {
  return Object.entries(WORDS).flatMap(([action, words]) => (counts[action] ? [`${counts[action]} ${words}`] : []));
}

/** `spec.replicas: 1 → 2`; of what is created, `spec.replicas: 2`, and not all of it: it may be long. */
export function describeFields({ operation, fields }: Pick<ResourcePlan, "operation" | "fields">): string[] {
  if (operation === "adopt") {
    return fields.map((field) =>
      "before" in field ? describeField(field) : `${field.path}: ${shortValue(field.after)}`,
    );
  }
  if (operation !== "create" && operation !== UNCHECKED) return fields.map(describeField);
  const lines = fields.slice(0, MAX_FIELDS).map(({ path, after }) => `${path}: ${shortValue(after)}`);
  return fields.length > MAX_FIELDS ? [...lines, `… and ${fields.length - MAX_FIELDS} more fields`] : lines;
}

/** A field of a group of objects, with its values where these are the same for all. */
export function describeCommon(field: FieldChange): string {
  return "before" in field || "after" in field ? describeField(field) : field.path;
}

function describeField(field: FieldChange): string {
  const [before, after] = shortChange(field.before, field.after);
  return `${field.path}: ${before || "(none)"} → ${after || "(none)"}`;
}

export const MAX_FIELDS = 20;

/** What approvals name, if the plan has it. */
export function describeDigests({ digest, group }: ObjectPlan): string[] {
  return digest === undefined ? [] : [`digest: ${digest}`, `group: ${group}`];
}

/** `20 to update: update Deployment, create 2 Pod` */
export function describeDifference({ action, objects, resources }: Difference): string {
  const counts = resources.map(
    ({ operation, type, count }) => `${operation} ${count === 1 ? type : `${count} ${type}`}`,
  );
  return [`${objects.length} ${WORDS[action]}`, ...(counts.length > 0 ? [counts.join(", ")] : [])].join(": ");
}

/** Objects that need attention first; those that stay as they are last. */
export function byImportance<T extends Pick<ObjectPlan, "action">>(objects: readonly T[]): T[] {
  return [...objects].sort((a, b) => ACTIONS.indexOf(a.action) - ACTIONS.indexOf(b.action));
}

/** What limits the report, each reason once for all that it concerns. */
export function describeLimits({ notes, objects, behind }: Report): string[] {
  return [...notes, ...behind, ...describeUnsent(objects), ...describeHidden(objects)];
}

/** Why objects and resources were not sent as dry runs. */
function describeUnsent(objects: readonly ObjectPlan[]): string[] {
  const reasons = new Map<string, { why: string; objects: number; resources: number }>();
  const count = (why: string | undefined, what: "objects" | "resources") => {
    if (why === undefined || why === NO_OBJECT) return;
    const key = why.startsWith(NO_RIGHT) ? NO_RIGHT : why;
    const reason = reasons.get(key) ?? { why, objects: 0, resources: 0 };
    reason[what]++;
    reasons.set(key, reason);
  };
  for (const { notValidated, resources } of objects) {
    count(notValidated, "objects");
    for (const { operation, checked, notChecked } of resources) {
      if (checked !== true && operation !== UNCHECKED) count(notChecked, "resources");
    }
  }
  return [...reasons.values()].map(({ why, objects, resources }) => {
    const counts = [
      ...(objects > 0 ? [counted(objects, "object")] : []),
      ...(resources > 0 ? [counted(resources, "resource")] : []),
    ];
    return `not checked by a dry run: ${counts.join(" and ")}: ${why}`;
  });
}

function describeHidden(objects: readonly ObjectPlan[]): string[] {
  const [first, ...others] = objects.flatMap(({ resources }) => resources.filter(({ hidden }) => hidden === true));
  if (first === undefined) return [];
  const which = `${first.type} ${first.name}${others.length > 0 ? ` and ${others.length} more` : ""}`;
  return [`what others have set in live objects is not shown, as you have no right to get them: ${which}`];
}

/** Such as `1 object`, or `2 objects`. */
export function counted(count: number, word: string): string {
  return `${count} ${word}${count === 1 ? "" : "s"}`;
}

/*
 * Many objects of a kind change in the same way when its program does: what a reader wants to know is which ways there are, and
 * how many objects each of them concerns.
 */

/** A report on all objects of kinds, with {@link differencesOf} them. */
export function byDifference(report: Report): Report {
  return { ...report, differences: differencesOf(report.objects) };
}

/** The objects of a report by what would happen to them, the most severe first, then the largest group. */
export function differencesOf(objects: readonly ObjectPlan[]): Difference[] {
  const groups = [...Map.groupBy(objects, identityOf).values()];
  return byImportance(groups.map(differenceOf).sort((a, b) => b.objects.length - a.objects.length));
}

/** The same for objects with the same difference, whatever they and their resources are called. */
function identityOf(plan: ObjectPlan): string {
  const { kind, action, resources } = plan;
  const [errors, notes] = [plan.errors, plan.notes].map((texts) => texts.map((text) => unnamed(plan, text)));
  return JSON.stringify([kind, action, resources.map(signatureOf).sort(), errors, notes]);
}

function signatureOf({ operation, type, fields, notChecked }: ResourcePlan): string {
  return JSON.stringify([operation, type, fields.map(({ path }) => path), operation === UNCHECKED ? notChecked : ""]);
}

function unnamed(plan: ObjectPlan, text: string): string {
  return text.replaceAll(objectKey(plan), "*").replaceAll(plan.name, "*");
}

function differenceOf(group: readonly ObjectPlan[]): Difference {
  const [{ kind, action, errors, notes }] = group as [ObjectPlan];
  const alike = Map.groupBy(
    group.flatMap(({ resources }) => resources),
    signatureOf,
  );
  const resources = [...alike.values()].map((same) => {
    const [{ operation, type, fields, notChecked }] = same as [ResourcePlan];
    const common = fields.map((_, index) => commonField(same.map((resource) => resource.fields[index] as FieldChange)));
    const why = operation === UNCHECKED && notChecked !== undefined && { notChecked };
    return { operation, type, count: same.length / group.length, fields: common, ...why };
  });
  return { kind, action, objects: group.map(objectKey).sort(), resources, errors, notes };
}

function commonField(fields: readonly FieldChange[]): FieldChange {
  const [first] = fields as [FieldChange];
  return fields.every((field) => isDeepStrictEqual(field, first)) ? first : { path: first.path };
}
