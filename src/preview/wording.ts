import { type Action, countActions, type ObjectPlan, type Report } from "./report";

/** Actions in the order in which they matter to a reader. */
const WORDS: Readonly<Record<Action, string>> = {
  invalid: "invalid",
  failed: "failed",
  delete: "to delete",
  replace: "to replace",
  release: "to release",
  update: "to update",
  create: "to create",
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

/** `namespace/name` */
export function fullName({ namespace, name }: ObjectPlan): string {
  return namespace === undefined ? name : `${namespace}/${name}`;
}

/** Objects that need attention first; those that stay as they are last. */
export function byImportance(objects: readonly ObjectPlan[]): ObjectPlan[] {
  return [...objects].sort((a, b) => ACTIONS.indexOf(a.action) - ACTIONS.indexOf(b.action));
}
