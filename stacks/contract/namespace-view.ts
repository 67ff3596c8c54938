import type { LiveObject } from "../../providers/kubernetes/client";

/**
 * Lets users who may not list all namespaces list those of the objects that they own; `kindstack proxy` serves them.
 *
 * A namespace belongs to the object that its label names.
 */
export interface NamespaceView {
  /** The label's key; its value is the object's name. */
  readonly label: string;
  /** The groups whose members see only their own namespaces, by default. */
  readonly userGroups: readonly string[];
  /** An object's owners, as keys that {@link ownerKeysOf} returns for the same user. Pure. */
  ownersOf(object: LiveObject): string[];
  /** All keys of a user as an owner: by name, and by each group. Pure. */
  ownerKeysOf(user: { name: string; groups: readonly string[] }): string[];
}
