import type { StateDecision } from "../../stacks/contract/annotations";
import type { NewCondition } from "../../stacks/contract/condition";
import type { Mode } from "../../stacks/contract/mode";
import type { CommonStatus } from "../../stacks/contract/object";
import type { Drift } from "./drift";

/** How the last update of an object by this process ended. A restart forgets it, and so tries once more. */
export interface Attempt {
  uid: string;
  generation: number;
  programDigest: string;
  outcome: "succeeded" | "terminal" | "pending" | "retryable";
  /** The drift that it was to repair, see {@link Facts.drifted}. */
  drifted: readonly string[];
  /** See {@link Facts.stateDecision}. */
  stateDecision: StateDecision | undefined;
  /** What this process wrote of it into the status; another client may have written that since. */
  conditions: readonly NewCondition[];
}

/** The last preview by this process of an object that is only observed, or whose plan waits for an approval. */
export interface Comparison extends Omit<Attempt, "outcome"> {
  outcome: "compared" | "terminal" | "retryable";
  /** See {@link comparedState}. */
  of: string;
  /** The plan that waits: who may not approve it, and the decision on it that the status tells of. */
  plan?: {
    digest: string;
    authors: readonly string[] | undefined;
    decision: string | undefined;
  };
  /** Until when it is valid, by `performance.now()`, if no event shows a change before. */
  untilMs: number;
}

/** Everything that a decision depends on, as it was observed at one time. */
export interface Facts {
  metadata: { uid: string; generation: number; deletionTimestamp?: string };
  status: CommonStatus;
  /** Whether the object was deleted in spite of its finalizer: the cache has nothing but its last state. */
  isTombstone: boolean;
  /** Whether the object has Kindstack's finalizer. */
  hasFinalizer: boolean;
  otherFinalizers: readonly string[];
  paused: boolean;
  /** What is wrong with an annotation; the object is paused. */
  annotationProblem: string | undefined;
  /** The strictest of the modes that are set for it. */
  mode: Mode;
  /** The value of the annotation that asks for an update, if there is one. */
  requested: string | undefined;
  /** What a user has decided for a state that is lost. */
  stateDecision: StateDecision | undefined;
  /** Whether the backend's list of stacks lacks the object's. */
  stackUnlisted: boolean;
  /** Fields of its resources that are left to others. */
  ignoreFields: readonly string[];
  /** Whether its resources stay when the object is deleted. */
  releases: boolean;
  /** Whether they stay by the propagation policy of the deletion, and no annotation of the object records that yet. */
  orphaned: boolean;
  /** Whether the program of its kind reads live resources. */
  readsLive: boolean;
  /** Whether its kind maintains fields that are no part of the stack. */
  maintained: boolean;
  /** What has changed since the last attempt read it, besides the spec. */
  changedReads: readonly string[];
  /** The digest of the program as it is now. */
  programDigest: string;
  /** Names of what differs from what was applied, or is missing; not of what a pending failure accounts for. */
  drifted: readonly string[];
  drift: Pick<Drift, "edited" | "missing" | "contents">;
  /** The drift that no watch shows, if a poll has found any. */
  polledDrift: string | undefined;
  /** Ids of resources that are missing because they completed by themselves, such as a Pod that exited. */
  completed: readonly string[];
  /** Whether the object lacks other resources besides those that completed. */
  lacksMore: boolean;
  lastAttempt: Attempt | undefined;
  /** The last preview, if it is valid: its time is not over, its plan exists, and the decision on the plan is the same. */
  lastComparison: Comparison | undefined;
  /** How long from now, in ms, that preview stays valid if nothing changes; may be infinite. */
  comparedForMs: number;
  /** In how many ms the blockers of the last attempt or destroy are checked again; 0 when one is gone. */
  blockedMs: number;
  /** Whether the last attempt or destroy had blockers, and one is gone now. */
  unblocked: boolean;
  /** For how many ms repairs wait, and replacements of what completed; and in how many a field ownership conflict is over. */
  backoff: { repairMs: number; replacementMs: number; conflictOverMs: number };
  /** The condition DriftUnknown by the last poll; undefined before the first. */
  driftUnknown: NewCondition | undefined;
  /** In how many ms a refresh is due; undefined when none is, as for kinds that are not refreshed. */
  refreshMs: number | undefined;
  /** Whether a new version of the program may reach the object now. */
  rolledOut: boolean;
  /** The reason in the object's plan, if it has one and that is of this generation. */
  planReason: string | undefined;
}

/** What a preview depends on besides the generation, the program and the names of what has drifted. */
export function comparedState(facts: Facts): string {
  const { metadata, mode, releases, ignoreFields, drift, stateDecision, stackUnlisted } = facts;
  const isDeleted = metadata.deletionTimestamp !== undefined;
  return JSON.stringify([mode, isDeleted, releases, ignoreFields, drift.contents, stateDecision, stackUnlisted]);
}
