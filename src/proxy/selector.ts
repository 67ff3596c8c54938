/** The longest value of a label; an object with a longer name has no namespaces, and in a selector it is an error. */
const MAX_VALUE_LENGTH = 63;

/**
 * The label selector of those namespaces of `owned` objects that `requested`, the client's own selector, selects.
 *
 * Ours comes first: whatever stands after a requirement that is complete can only narrow it, or make the whole selector
 * one that the API server refuses.
 */
export function ownNamespaces(label: string, owned: readonly string[], requested: string | null): string {
  const values = owned.filter((name) => name.length <= MAX_VALUE_LENGTH);
  // No namespace can match `label,!label`: the API server has no other way to select nothing.
  const own = values.length === 0 ? `${label},!${label}` : `${label} in (${values.join(",")})`;
  return requested === null || requested.trim() === "" ? own : `${own},${requested}`;
}
