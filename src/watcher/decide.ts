import { findCondition } from "../../stacks/contract/condition";
import type { CommonStatus } from "../../stacks/contract/object";

/** Why an update runs; the reason of the condition while it does. */
export type Cause = "Creating" | "Updating" | "ProgramChanged" | "Requested" | "Repairing" | "Retrying";

/** What has to be done about an object. */
export type Action =
  | { type: "none" }
  | { type: "pause" }
  | { type: "up"; cause: Cause; refresh: boolean }
  | { type: "destroy" };

/** How this process's last update of an object ended; a restart forgets it, and so tries once more. */
export interface Attempt {
  uid: string;
  generation: number;
  program: string;
  outcome: "succeeded" | "terminal" | "retryable";
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
}

/**
 * What to do about an object, from its present state alone: which event led here does not matter.
 *
 * An object whose last update succeeded for this generation with this program, and of which nothing has drifted, needs
 * nothing; so does one that only its author can put right.
 */
export function decide(situation: Situation): Action {
  const { metadata, status, program, drifted, lastAttempt, requested } = situation;
  if (situation.paused) return { type: "pause" };
  if (metadata.deletionTimestamp) return situation.finalized ? { type: "destroy" } : { type: "none" };
  if (requested !== undefined && requested !== status.lastHandledReconcile) {
    return { type: "up", cause: "Requested", refresh: true };
  }

  const attempted = lastAttempt?.uid === metadata.uid && lastAttempt.generation === metadata.generation;
  const unchanged = attempted && lastAttempt.program === program && lastAttempt.drift === drifted.join();
  if (unchanged && lastAttempt.outcome === "terminal") return { type: "none" };

  const repair = drifted.length > 0;
  if (status.stack === undefined) return { type: "up", cause: attempted ? "Retrying" : "Creating", refresh: repair };

  const ready = findCondition(status.conditions, "Ready");
  if (ready?.observedGeneration !== metadata.generation) return { type: "up", cause: "Updating", refresh: repair };
  if (ready.status !== "True") return { type: "up", cause: "Retrying", refresh: true };
  if (status.stack.program !== program) return { type: "up", cause: "ProgramChanged", refresh: repair };
  if (repair) return { type: "up", cause: "Repairing", refresh: true };
  return { type: "none" };
}
