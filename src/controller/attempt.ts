import type { UpdateFailure } from "../automation/failures";
import type { Result, Step } from "./context";
import type { Attempt } from "./facts";

/** The generation and the request that an attempt was for. */
export function handled({ facts: { object, settings } }: Step<"facts">) {
  return {
    observedGeneration: object.metadata.generation,
    ...(settings.requested !== undefined && { lastHandledReconcile: settings.requested }),
  };
}

/** What this process remembers of an attempt, or a comparison, that has ended. */
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
