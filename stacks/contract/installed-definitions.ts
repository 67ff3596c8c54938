import type { Manifest } from "../../providers/kubernetes/client";
import { customResourceDefinition } from "./crd";
import type { AnyKind } from "./kind";
import { modePolicies } from "./mode-policy";
import { planDefinitions } from "./plan-definitions";

/** What is installed for kinds besides the operator, and stays when it goes. */
export function installedDefinitions(kinds: readonly AnyKind[]): Manifest[] {
  return [...kinds.map((kind) => customResourceDefinition(kind)), ...planDefinitions(), ...modePolicies(kinds)];
}
