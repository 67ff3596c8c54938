import type { LiveObject, ObjectMeta } from "../../providers/kubernetes/client";

/** What names exactly this object in an apply: the UID keeps a successor of the same name from being written to. */
export function identityOf({ metadata: { name, namespace, uid } }: LiveObject): ObjectMeta {
  return { name, ...(namespace !== undefined && { namespace }), uid };
}

/** On every object from before its first update until its stack is destroyed. */
export const FINALIZER = "kindstack.dev/stack";
