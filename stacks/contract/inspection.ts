import type { AnyKind } from "./kind";
import type { PolicyRule } from "./policy-rule";

/** The Secret of the certificate with which an operator serves previews, and of its CA. */
export const INSPECTION_SECRET = "kindstack-preview-tls";

/**
 * What an operator that serves previews needs besides: the dry run of an object that does not exist yet is a creation to
 * RBAC.
 */
export function inspectionRules(kinds: readonly AnyKind[]): PolicyRule[] {
  return kinds.map(({ group, plural }) => ({ apiGroups: [group], resources: [plural], verbs: ["create"] }));
}
