import { type AnyKind, kindName } from "../../stacks/contract/kind";

/** One object, as the queue holds it. */
export interface ObjectItem {
  readonly id: string;
  readonly kind: AnyKind;
  /** `namespace/name`, or `name` */
  readonly key: string;
}

export function objectItem(kind: AnyKind, key: string): ObjectItem {
  return { id: `${kindName(kind)}|${key}`, kind, key };
}
