import type { LiveObject } from "../../providers/kubernetes/client";
import type { UpdateFailure } from "../automation/event-log";
import type { Result, Step } from "./context";
import type { Attempt } from "./facts";
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

/** The generation and the request that an attempt was for. */
export function handled({ facts: { object, settings } }: Step<"facts">) {
  return {
    observedGeneration: object.metadata.generation,
    ...(settings.requested !== undefined && { lastHandledReconcile: settings.requested }),
  };
}

/** What this process remembers of an attempt, or a preview, that has ended. */
export function remembered<T>(
  { facts: { object, settings, stack } }: Step<"facts">,
  ended: T,
): T & Pick<Attempt, "uid" | "generation" | "programDigest" | "stateDecision"> {
  const { uid, generation } = object.metadata;
  const { stateDecision } = settings;
  return { uid, generation, programDigest: stack.program, stateDecision, ...ended };
}

/** What the operator itself lacks, which all objects meet alike. */
const OWN_DEPENDENCIES = ["NoEngine", "SystemError", "Unreadable"];

/** How what has failed is tried again. */
export function retry(failures: readonly UpdateFailure[]): Result {
  const failure = failures.find(({ errorClass }) => errorClass !== "pending");
  if (failure?.dependency !== undefined) return { dependency: failure.dependency };
  return failure !== undefined && OWN_DEPENDENCIES.includes(failure.reason) ? { dependency: failure.reason } : "retry";
}
