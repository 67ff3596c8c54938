import type { LiveObject } from "../../providers/kubernetes/client";
import type { Step } from "./context";
import type { StatusChange } from "./status";

/** Writes what is new of an object's status, unless the object is gone. All conditions are written here. */
export async function report(
  { context: { writer }, facts, state }: Step<"facts" | "state", "writer">,
  object: LiveObject,
  change: StatusChange,
): Promise<LiveObject> {
  const { object: observed, settings } = facts;
  return observed.isTombstone ? object : writer.writeStatus(object, state, { ...change, mode: settings.mode });
}
