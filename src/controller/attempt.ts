import type { UpdateFailure } from "../automation/failures";
import type { Reconcile, Result } from "./context";
import type { Attempt } from "./facts";

/** The generation and the request that an attempt was for. */
export function handled({ facts: { metadata, requested } }: Reconcile) {
  return {
    observedGeneration: metadata.generation,
    ...(requested !== undefined && { lastHandledReconcile: requested }),
  };
}

/** What this process remembers of an attempt, or a comparison, that has ended. */
export function remembered<T>(
  { context: { programDigest }, facts: { metadata, stateDecision } }: Reconcile,
  ended: T,
): T & Pick<Attempt, "uid" | "generation" | "programDigest" | "stateDecision"> {
  const { uid, generation } = metadata;
  return { uid, generation, programDigest, stateDecision, ...ended };
}

/** What the operator itself lacks, which all objects meet alike. */
const OWN_DEPENDENCIES = ["NoEngine", "SystemError", "Unreadable"];

/** How what has failed is tried again. */
export function retry(failures: readonly UpdateFailure[]): Result {
  const failure = failures.find(({ errorClass }) => errorClass !== "pending");
  if (failure?.dependency !== undefined) return { dependency: failure.dependency };
  return failure !== undefined && OWN_DEPENDENCIES.includes(failure.reason) ? { dependency: failure.reason } : "retry";
}
