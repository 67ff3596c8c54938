import { DEFAULT_USER_GROUP } from "../labels";

/**
 * The groups whose members make namespaces through their tenants: `KINDSTACK_CAPSULE_USER_GROUPS`, names with commas
 * between them. For tenants whose owner is a ServiceAccount, the group `system:serviceaccounts:<namespace>` is one.
 */
export function userGroups(): string[] {
  const groups = namesIn("KINDSTACK_CAPSULE_USER_GROUPS");
  return groups.length > 0 ? groups : [DEFAULT_USER_GROUP];
}

/** Users and groups that a cordon does not concern. */
export function cordonExempt(): string[] {
  return namesIn("KINDSTACK_CAPSULE_CORDON_EXEMPT");
}

/** The names in a variable of the environment, with commas between them. */
function namesIn(variable: string): string[] {
  const names = (process.env[variable] ?? "").split(",").map((name) => name.trim());
  return [...new Set(names.filter((name) => name !== ""))];
}

/** In CEL: whether the request is made by a member of one of the groups. */
export function isMember(groups: readonly string[]): string {
  return `request.userInfo.groups.exists(group, group in ${JSON.stringify(groups)})`;
}

/**
 * In CEL: whether the requesting user may change Tenants themselves. Those are the administrators of tenants, the
 * operator included; no user needs to be named.
 */
export const ADMINISTERS_TENANTS =
  "authorizer.group('capsule.clastix.io').resource('tenants').check('patch').allowed()";
