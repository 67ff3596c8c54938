import { findCondition } from "../../stacks/contract/condition";
import type { CommonStatus } from "../../stacks/contract/object";

/** Why an update runs; the reason of the condition while it does. */
export type Cause = "Creating" | "Updating" | "ProgramChanged" | "Requested" | "Repairing" | "Retrying";

/** What has to be done about an object. */
export type Action =
  | { type: "none" }
  | { type: "pause" }
  /** What the last attempt waits for is still there. */
  | { type: "wait" }
  /** Nothing but the finalizer is missing. */
  | { type: "hold" }
  | { type: "up"; cause: Cause; refresh: boolean }
  | { type: "destroy" };

/** How this process's last update of an object ended; a restart forgets it, and so tries once more. */
export interface Attempt {
  uid: string;
  generation: number;
  program: string;
  outcome: "succeeded" | "terminal" | "pending" | "retryable";
  /** What it was to repair, joined. */
  drift: string;
}

/** Everything that a decision depends on. */
export interface Situation {
  metadata: { uid: string; generation: number; deletionTimestamp?: string };
  /** Whether the object carries Kindstack's finalizer. */
  finalized: boolean;
  paused: boolean;
  /** The value of the annotation that asks for an update, if there is one. */
  requested: string | undefined;
  status: CommonStatus;
  /** The digest of the program as it is now. */
  program: string;
  /** What is not as it was applied, or missing; a name for each. */
  drifted: readonly string[];
  lastAttempt: Attempt | undefined;
  /** Whether all that the last attempt, or destroy, waits for is still there. */
  waits: boolean;
}

/**
 * What to do about an object, from its present state alone: which event led here does not matter.
 *
 * An object whose last update succeeded for this generation with this program, and of which nothing has drifted, needs
 * nothing; so does one that only its author can put right.
 */
export function decide(situation: Situation): Action {
  const { metadata, status, program, drifted, lastAttempt, requested, finalized, waits } = situation;
  if (situation.paused) return { type: "pause" };
  if (metadata.deletionTimestamp) {
    if (!finalized) return { type: "none" };
    return waits ? { type: "wait" } : { type: "destroy" };
  }
  if (requested !== undefined && requested !== status.lastHandledReconcile) {
    return { type: "up", cause: "Requested", refresh: true };
  }

  const attempted = lastAttempt?.uid === metadata.uid && lastAttempt.generation === metadata.generation;
  const unchanged = attempted && lastAttempt.program === program && lastAttempt.drift === drifted.join();
  // Somebody took the finalizer off: without it a deletion would leave behind what was made.
  const rest: Action = finalized || status.stack === undefined ? { type: "none" } : { type: "hold" };
  if (unchanged && lastAttempt.outcome === "terminal") return rest;
  if (unchanged && lastAttempt.outcome === "pending" && waits) return finalized ? { type: "wait" } : rest;

  const repair = drifted.length > 0;
  if (status.stack === undefined) return { type: "up", cause: attempted ? "Retrying" : "Creating", refresh: repair };

  const ready = findCondition(status.conditions, "Ready");
  if (ready?.observedGeneration !== metadata.generation) return { type: "up", cause: "Updating", refresh: repair };
  if (ready.status !== "True") return { type: "up", cause: "Retrying", refresh: true };
  if (status.stack.program !== program) return { type: "up", cause: "ProgramChanged", refresh: repair };
  if (repair) return { type: "up", cause: "Repairing", refresh: true };
  return rest;
}
