import type { LiveObject, Lookup } from "../../../providers/kubernetes/client";

/** The answer of an API server that has this object, or none of its name. */
export function lookupOf(object: LiveObject | undefined): Lookup {
  return object === undefined ? { outcome: "absent" } : { outcome: "found", object };
}
