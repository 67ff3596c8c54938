import type { Action, ObjectPlan, Report } from "./report";

/** Actions in the order in which they matter to a reader. */
const ACTIONS: readonly Action[] = ["invalid", "failed", "delete", "replace", "release", "update", "create", "none"];

/** `1 to delete, 2 to update, 3 unchanged` */
export function describeSummary({ summary, problems }: Report): string {
  const parts = ACTIONS.flatMap((action) => {
    const count = summary[action];
    return count === undefined ? [] : [`${count} ${WORDS[action]}`];
  });
  if (problems.length > 0) parts.push(`${problems.length} ${problems.length === 1 ? "file" : "files"} unreadable`);
  return parts.join(", ") || "no objects";
}

const WORDS: Record<Action, string> = {
  invalid: "invalid",
  failed: "failed",
  delete: "to delete",
  replace: "to replace",
  release: "to release",
  update: "to update",
  create: "to create",
  none: "unchanged",
};

/** `1 to create, 2 to update`: what happens to an object's resources. */
export function describeResources({ resources }: ObjectPlan): string {
  return ACTIONS.flatMap((action) => {
    const count = resources.filter(({ operation }) => operation === action).length;
    return count === 0 ? [] : [`${count} ${WORDS[action]}`];
  }).join(", ");
}

/** `namespace/name` */
export function fullName({ namespace, name }: ObjectPlan): string {
  return namespace === undefined ? name : `${namespace}/${name}`;
}

/** Objects that need attention first; those that stay as they are last. */
export function byImportance(objects: readonly ObjectPlan[]): ObjectPlan[] {
  return [...objects].sort((a, b) => ACTIONS.indexOf(a.action) - ACTIONS.indexOf(b.action));
}
