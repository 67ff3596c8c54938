import type { LiveObject } from "../../providers/kubernetes/client";
import type { Step } from "./context";
import type { StatusChange } from "./status";

/** Writes what is new of an object's status, unless the object is gone. All conditions are written here. */
export async function report(
  { context: { writer }, facts, state }: Step<"facts" | "state", "writer">,
  object: LiveObject,
  change: StatusChange,
): Promise<LiveObject> {
  const { isTombstone, metadata } = facts.object;
  if (isTombstone) return object;
  const conditions = change.conditions?.map((one) => ({ observedGeneration: metadata.generation, ...one }));
  const stated = { ...change, ...(conditions && { conditions }) };
  return writer.writeStatus(object, state, { ...stated, mode: facts.settings.mode });
}
