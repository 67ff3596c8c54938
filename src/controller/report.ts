import type { LiveObject } from "../../providers/kubernetes/client";
import type { Reconcile } from "./context";
import type { StatusChange } from "./status";

/** Writes what is new of an object's status, unless the object is gone. All conditions are written here. */
export async function report(
  { context: { writer }, facts, state }: Reconcile,
  object: LiveObject,
  change: StatusChange,
): Promise<LiveObject> {
  return facts.isTombstone ? object : writer.writeStatus(object, state, { ...change, mode: facts.mode });
}
