import type { Failure } from "../../providers/errors";
import type { Settings, StateDecision } from "../../stacks/contract/annotations";
import type { NewCondition } from "../../stacks/contract/condition";
import type { CommonStatus } from "../../stacks/contract/object";
import type { Drift } from "./drift";

/** How the last update of an object by this process ended. A restart forgets it, and so tries once more. */
export interface Attempt {
  uid: string;
  generation: number;
  programDigest: string;
  outcome: "succeeded" | "terminal" | "pending" | "retryable";
  /** The drift that it was to repair, see {@link DriftFacts.ids}. */
  drifted: readonly string[];
  stateDecision: StateDecision | undefined;
  /** Whether it was an update before a destroy. */
  finishes?: true;
  /** What this process wrote of it into the status; another client may have written that since. */
  conditions: readonly NewCondition[];
}

/** The last preview by this process of an object that is only observed, or whose plan waits for an approval. */
export interface Preview extends Omit<Attempt, "outcome" | "finishes"> {
  outcome: "previewed" | "terminal" | "retryable";
  /** See {@link previewedState}. */
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

/** Everything that a decision depends on, as it was observed at one time; a function takes the groups that it needs. */
export interface Facts {
  object: ObjectFacts;
  settings: Settings;
  stack: StackFacts;
  drift: DriftFacts;
  last: LastFacts;
  timing: Timing;
}

export interface ObjectFacts {
  metadata: { uid: string; generation: number; deletionTimestamp?: string };
  status: CommonStatus;
  /** Whether the object was deleted in spite of its finalizer: the cache has nothing but its last state. */
  isTombstone: boolean;
  /** Whether it has Kindstack's finalizer. */
  hasFinalizer: boolean;
  otherFinalizers: readonly string[];
  /** Whether its resources stay by the propagation policy of its deletion, and the object does not show that it is recorded. */
  orphaned: "seen" | "recorded" | undefined;
}

/** What an object's stack is held to besides the object, and whether it is there. */
export interface StackFacts {
  /** Why nothing can be updated now: the backend is not this operator's. */
  refusal: Pick<Failure, "reason" | "message"> | undefined;
  /** Whether the backend's list of stacks lacks it, or a destroy did not find it. */
  unlisted: boolean;
  /** The digest of the program as it is now. */
  program: string;
  /** Whether a new version of the program may reach the object now. */
  rolledOut: boolean;
  /** What has changed since the last attempt read it, besides the spec. */
  changedReads: readonly string[];
  /** Whether the program reads live resources. */
  readsLive: boolean;
  /** Whether all that the stack made is found by its marks, see {@link adoptsAfterCrash}. */
  adopts: boolean;
  /** Whether the kind maintains fields that are no part of the stack. */
  maintained: boolean;
}

/**
 * Drift: what differs from what was applied. It is found by the caches (drift.ts), by the kind's code (`liveState`), or by a poll
 * of what no watch shows (operator/drift-poller.ts). What only a refresh finds is looked for by time (repairs.ts). `decideWork` in
 * decide.ts decides what is done about it.
 */
export interface DriftFacts extends Pick<Drift, "edited" | "missing" | "contents"> {
  /** Names of all of it, and of what is lacking; not of what a pending failure accounts for. */
  ids: readonly string[];
  /** What no watch shows, if a poll has found any. */
  polled: string | undefined;
  /** Ids of resources that are missing because they completed by themselves, such as a Pod that exited. */
  completed: readonly string[];
  /** Whether the object lacks other resources besides those. */
  lacksMore: boolean;
  /** The condition DriftUnknown by the kind's code and the last poll; undefined before the first. */
  unknown: NewCondition | undefined;
  /** In how many ms code of the kind that has not answered may be asked again. */
  unansweredMs?: number | undefined;
}

/** What this process has done before. */
export interface LastFacts {
  attempt: Attempt | undefined;
  /** Whether the object's deletion has ended the last update, and the state has all that was made. */
  isRecorded: boolean;
  /** The last preview, if it is valid: its time is not over, its plan exists, and the decision on the plan is the same. */
  preview: Preview | undefined;
  /** The reason in the object's plan, if it has one and that is of this generation. */
  planReason: string | undefined;
}

/** In how many ms from now something is due; not later than now where that is not positive. */
export interface Timing {
  /** The next look at the blockers of the last attempt or destroy; 0 when one is gone. */
  blockedMs: number;
  /** The next repair, and the next replacement of what completed. */
  repairMs: number;
  replacementMs: number;
  /** The end of a field ownership conflict. */
  conflictOverMs: number;
  /** The end of the last preview's validity if nothing changes; may be infinite. */
  previewedForMs: number;
  /** The next refresh; undefined when none is, as for kinds that are not refreshed. */
  refreshMs: number | undefined;
}

/** What a preview depends on besides the generation, the program and the names of what has drifted. */
export function previewedState({ object, settings, stack, drift }: Omit<Facts, "last" | "timing">): string {
  const { mode, releases, ignoreFields, stateDecision } = settings;
  const isDeleted = object.metadata.deletionTimestamp !== undefined;
  return JSON.stringify([mode, isDeleted, releases, ignoreFields, drift.contents, stateDecision, stack.unlisted]);
}
