import { TerminalError } from "../errors";
import { listItems } from "../list-items";
import { matchesPattern } from "../pattern";
import { podNamespace } from "./pod-namespace";

const VARIABLE = "KINDSTACK_PROTECTED_NAMESPACES";
/** The cluster's own, and the operator's as it is called where it is not configured otherwise. */
const ALWAYS = ["kube-*", "default", "kindstack-system"];
/** A pattern of namespaces' names, in which `*` matches any characters. */
export const NAMESPACE_PATTERN = "^[a-z0-9*]([-a-z0-9*]*[a-z0-9*])?$";
const MAX_NAME_LENGTH = 63;

/**
 * The namespaces that no object may claim: `kube-*`, `default`, the operator's own, and those that
 * `KINDSTACK_PROTECTED_NAMESPACES` adds, patterns separated by commas in which `*` matches any characters. A user who
 * may create tenants could otherwise become an administrator of them.
 *
 * @throws TerminalError `Misconfigured` for what matches no namespace's name, such as a regular expression: it would protect nothing
 */
export function protectedNamespaces(): string[] {
  const own = process.env.KUBERNETES_SERVICE_HOST && podNamespace();
  const added = listItems(process.env[VARIABLE] ?? "");
  const wrong = added.find(
    (one) => !new RegExp(NAMESPACE_PATTERN).test(one) || one.replaceAll("*", "").length > MAX_NAME_LENGTH,
  );
  if (wrong !== undefined) {
    throw new TerminalError(
      "Misconfigured",
      `${VARIABLE}: ${JSON.stringify(wrong)} matches no namespace's name; write names or patterns such as "*-system", separated by commas: * matches any characters, and regular expressions are not read`,
    );
  }
  return [...new Set([...ALWAYS, ...(own ? [own] : []), ...added])];
}

/** Whether no object may claim this namespace; see {@link protectedNamespaces}. */
export function isProtectedNamespace(name: string): boolean {
  return protectedNamespaces().some((pattern) => matchesPattern(pattern, name));
}

/**
 * Refuses a protected namespace.
 *
 * @param field where the name stands, such as `spec.namespaces.0`
 * @throws TerminalError `NamespaceProtected` naming the field, the name and what is protected
 */
export function refuseProtectedNamespace(name: string, field: string): void {
  if (!isProtectedNamespace(name)) return;
  const allowed = `all except ${protectedNamespaces().join(", ")}`;
  throw new TerminalError(
    "NamespaceProtected",
    `${field}: ${JSON.stringify(name)} is protected and cannot belong to a tenant; allowed: ${allowed}`,
  );
}
