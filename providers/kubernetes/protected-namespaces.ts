import { TerminalError } from "../errors";
import { listItems, matchesPattern } from "../pattern";
import { podNamespace } from "./pod-namespace";

const VARIABLE = "KINDSTACK_PROTECTED_NAMESPACES";
/** The cluster's own, and the operator's as it is called where it is not configured otherwise. */
const ALWAYS = ["kube-*", "default", "kindstack-system"];
/**
 * The namespaces that no object may claim: `kube-*`, `default`, the operator's own, and those that
 * `KINDSTACK_PROTECTED_NAMESPACES` adds, patterns separated by commas in which `*` matches any characters. A user who may
 * create tenants would otherwise make himself an administrator of them.
 */
export function protectedNamespaces(environment: NodeJS.ProcessEnv = process.env, ownNamespaceFile?: string): string[] {
  const added = listItems(environment[VARIABLE] ?? "");
  const own = environment.KUBERNETES_SERVICE_HOST === undefined ? undefined : podNamespace(ownNamespaceFile);
  return [...new Set([...ALWAYS, ...(own ? [own] : []), ...added])];
}

/** Whether no object may claim this namespace; see {@link protectedNamespaces}. */
export function isProtectedNamespace(name: string, patterns = protectedNamespaces()): boolean {
  return patterns.some((pattern) => matchesPattern(pattern, name));
}

/**
 * Refuses a protected namespace.
 *
 * @param field where the name stands, such as `spec.namespaces.0`
 * @throws TerminalError `NamespaceProtected` naming the field, the name and what is protected
 */
export function refuseProtectedNamespace(name: string, field: string, patterns = protectedNamespaces()): void {
  if (!isProtectedNamespace(name, patterns)) return;
  throw new TerminalError(
    "NamespaceProtected",
    `${field}: ${JSON.stringify(name)} is protected and cannot belong to a tenant; allowed: all except ${patterns.join(", ")}`,
  );
}
