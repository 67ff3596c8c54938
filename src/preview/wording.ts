import { shortValue } from "../text/plain-text";
import { type Action, countActions, type FieldChange, NO_OBJECT, type ObjectPlan, type Report } from "./report";

/** Actions in the order in which they matter to a reader. */
const WORDS: Readonly<Record<Action, string>> = {
  invalid: "invalid",
  failed: "failed",
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
  if (problems.length > 0) parts.push(`${problems.length} ${problems.length === 1 ? "file" : "files"} unreadable`);
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

/** `spec.replicas: 1 → 2` */
export function describeField(field: FieldChange): string {
  const before = "before" in field ? shortValue(field.before) : "(none)";
  return `${field.path}: ${before} → ${"after" in field ? shortValue(field.after) : "(none)"}`;
}

/** What approvals name, if the plan has it. */
export function describeDigests({ digest, group }: ObjectPlan): string[] {
  return digest === undefined ? [] : [`digest: ${digest}`, `group: ${group}`];
}

/** Objects that need attention first; those that stay as they are last. */
export function byImportance(objects: readonly ObjectPlan[]): ObjectPlan[] {
  return [...objects].sort((a, b) => ACTIONS.indexOf(a.action) - ACTIONS.indexOf(b.action));
}

/** Why resources were not sent as dry runs, each reason once. */
export function describeUnchecked({ objects }: Report): string[] {
  const counts = new Map<string, number>();
  for (const { checked, notChecked } of objects.flatMap(({ resources }) => resources)) {
    if (checked !== true && notChecked !== undefined) counts.set(notChecked, (counts.get(notChecked) ?? 0) + 1);
  }
  counts.delete(NO_OBJECT);
  return [...counts].map(
    ([why, count]) => `not checked by a dry run: ${count} ${count === 1 ? "resource" : "resources"}: ${why}`,
  );
}
