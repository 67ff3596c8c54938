import type { Manifest } from "../../providers/kubernetes/client";
import { authorPolicies } from "./author-policy";
import { customResourceDefinition } from "./crd";
import { finalizerPolicies } from "./finalizer-policy";
import type { AnyKind } from "./kind";
import { modePolicies } from "./mode-policy";
import { planDefinitions } from "./plan-definitions";
import { versionPolicies } from "./version-policy";

/** Rules that an installation may have or not. */
export interface InstalledRules {
  /** The API server records who changes an object, and the operator heeds no approval by them. */
  authorMayNotApprove?: boolean;
}

/** What is installed for kinds besides the operator, and stays when it goes. */
export function installedDefinitions(kinds: readonly AnyKind[], rules: InstalledRules = {}): Manifest[] {
  return [...kinds.map((kind) => customResourceDefinition(kind)), ...installedPolicies(kinds, rules)];
}

/** All of that but the CRDs of kinds. */
export function installedPolicies(kinds: readonly AnyKind[], { authorMayNotApprove }: InstalledRules): Manifest[] {
  return [
    ...planDefinitions(),
    ...modePolicies(kinds),
    ...finalizerPolicies(kinds),
    ...versionPolicies(kinds),
    ...(authorMayNotApprove ? authorPolicies(kinds) : []),
  ];
}
