import { type AnyKind, kindName } from "../../stacks/contract/kind";
import { objectKey } from "../../stacks/contract/object";

/** One object, as the queue holds it. */
export interface ObjectItem {
  readonly id: string;
  readonly kind: AnyKind;
  /** See {@link objectKey}. */
  readonly key: string;
  /** Empty for what has none. */
  readonly namespace: string;
}

export function objectItem(kind: AnyKind, metadata: { namespace?: string; name?: string }): ObjectItem {
  const key = objectKey(metadata);
  return { id: `${kindName(kind)}|${key}`, kind, key, namespace: metadata.namespace ?? "" };
}
