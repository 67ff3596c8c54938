import { findCondition } from "../../stacks/contract/condition";
import type { CommonStatus } from "../../stacks/contract/object";

/** Why an update runs; the reason of the condition while it does. */
export type Cause = "Creating" | "Updating" | "ProgramChanged" | "Repairing" | "Retrying";

/** What has to be done about an object. */
export type Action = { type: "none" } | { type: "up"; cause: Cause; refresh: boolean } | { type: "destroy" };

/** How this process's last update of an object ended; a restart forgets it, and so tries once more. */
export interface Attempt {
  uid: string;
  generation: number;
  program: string;
  outcome: "succeeded" | "terminal" | "retryable";
  /** The ids of the drifted resources that it was to repair, joined. */
  drift: string;
}

/** Everything that a decision depends on. */
export interface Situation {
  metadata: { uid: string; generation: number; deletionTimestamp?: string };
  /** Whether the object carries Kindstack's finalizer. */
  finalized: boolean;
  status: CommonStatus;
  /** The digest of the program as it is now. */
  program: string;
  /** Ids of owned resources that are not as they were applied. */
  drifted: readonly string[];
  lastAttempt: Attempt | undefined;
}

/**
 * What to do about an object, from its present state alone: which event led here does not matter.
 *
 * An object whose last update succeeded for this generation with this program, and of which nothing has drifted, needs
 * nothing; so does one that only its author can put right.
 */
export function decide(situation: Situation): Action {
  const { metadata, status, program, drifted, lastAttempt } = situation;
  if (metadata.deletionTimestamp) return situation.finalized ? { type: "destroy" } : { type: "none" };

  const attempted = lastAttempt?.uid === metadata.uid && lastAttempt.generation === metadata.generation;
  const drift = drifted.join();
  if (
    attempted &&
    lastAttempt.outcome === "terminal" &&
    lastAttempt.program === program &&
    lastAttempt.drift === drift
  ) {
    return { type: "none" };
  }
  const repair = drifted.length > 0;
  if (status.stack === undefined) return { type: "up", cause: attempted ? "Retrying" : "Creating", refresh: repair };

  const ready = findCondition(status.conditions, "Ready");
  if (ready?.observedGeneration !== metadata.generation) return { type: "up", cause: "Updating", refresh: repair };
  if (ready.status !== "True") return { type: "up", cause: "Retrying", refresh: true };
  if (status.stack.program !== program) return { type: "up", cause: "ProgramChanged", refresh: repair };
  if (repair) return { type: "up", cause: "Repairing", refresh: true };
  return { type: "none" };
}
