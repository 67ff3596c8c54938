import { type AnyKind, kindName } from "../../stacks/contract/kind";
import { type NamespacedKey, namespacedKey } from "../../stacks/contract/object";

/** One object, as the queue holds it. */
export interface ObjectItem extends NamespacedKey {
  readonly id: string;
  readonly kind: AnyKind;
}

export function objectItem(kind: AnyKind, metadata: { namespace?: string; name?: string }): ObjectItem {
  const object = namespacedKey(metadata);
  return { id: `${kindName(kind)}|${object.key}`, kind, ...object };
}
