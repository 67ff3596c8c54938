import { TENANT_LABEL } from "../../stacks/capsule-tenant/labels";

/** Both at once, nothing can have: the API server has no other way to select nothing. */
const NOTHING = `${TENANT_LABEL},!${TENANT_LABEL}`;
/** The longest value of a label; a tenant with a longer name has no namespaces, and in a selector it is an error. */
const MAX_VALUE_LENGTH = 63;

/**
 * The label selector of those namespaces of `tenants` that `requested`, the client's own selector, selects.
 *
 * Ours comes first: whatever stands after a requirement that is complete can only narrow it, or make the whole selector
 * one that the API server refuses.
 */
export function ownNamespaces(tenants: readonly string[], requested: string | null): string {
  const values = tenants.filter((name) => name.length <= MAX_VALUE_LENGTH);
  const own = values.length === 0 ? NOTHING : `${TENANT_LABEL} in (${values.join(",")})`;
  return requested === null || requested.trim() === "" ? own : `${own},${requested}`;
}
