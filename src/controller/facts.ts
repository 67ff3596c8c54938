import type { NewCondition } from "../../stacks/contract/condition";
import type { Mode } from "../../stacks/contract/mode";
import type { CommonStatus } from "../../stacks/contract/object";
import type { Drift } from "./drift";

/** How this process's last update of an object ended; a restart forgets it, and so tries once more. */
export interface Attempt {
  uid: string;
  generation: number;
  programDigest: string;
  outcome: "succeeded" | "terminal" | "pending" | "retryable";
  /** What it was to repair. */
  drifted: readonly string[];
  /** What the status says of it, unless another client has written it since. */
  conditions: readonly NewCondition[];
}

/** This process's last comparison of an object that is only observed, or whose plan waits for an approval. */
export interface Comparison extends Omit<Attempt, "outcome"> {
  outcome: "compared" | "terminal" | "retryable";
  /** See {@link comparedState}. */
  of: string;
  /** The plan that waits, whose approvals of it have no effect, and which decision on it the status tells of. */
  plan?: {
    digest: string;
    group: string;
    authors: readonly string[] | undefined;
    decision: string | undefined;
  };
  /** By `performance.now()`, how long it holds where no event shows a change. */
  untilMs: number;
}

/** Everything that a decision depends on, as it was observed at one time. */
export interface Facts {
  metadata: { uid: string; generation: number; deletionTimestamp?: string };
  status: CommonStatus;
  /** Whether the object was deleted in spite of its finalizer: its last state is all there is. */
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
  /** Fields that it leaves to others. */
  ignoreFields: readonly string[];
  /** Whether its resources stay when the object is deleted. */
  releases: boolean;
  /** Whether that is so by a propagation policy that was seen and that nothing on the object records yet. */
  orphaned: boolean;
  /** Whether its kind depends on what is alive, and whether it maintains what is no part of the stack. */
  readsLive: boolean;
  maintained: boolean;
  /** What the last attempt has read besides the spec and is not so any more. */
  changedReads: readonly string[];
  /** The digest of the program as it is now. */
  programDigest: string;
  /** What is not as it was applied, or lacking; a name for each. What a pending failure accounts for is left out. */
  drifted: readonly string[];
  drift: Pick<Drift, "edited" | "missing" | "contents">;
  /** The drift that no watch shows, if a poll has found any. */
  polledDrift: string | undefined;
  /** Of what is lacking, what completed by itself. */
  completed: readonly string[];
  /** Whether more than that is drifted. */
  lacksMore: boolean;
  lastAttempt: Attempt | undefined;
  /** What a comparison in place of an update came to last, unless its plan, or the decision on that, is another by now. */
  lastComparison: Comparison | undefined;
  /** How long from now, in ms, that holds where nothing changes; may be infinite. */
  comparedForMs: number;
  /** How long from now, in ms, the blockers of the last attempt or destroy are checked again; 0 when one is gone. */
  blockedMs: number;
  /** Whether an attempt waited until now. */
  unblocked: boolean;
  /** How long from now repairs, and replacements of what completed, wait; and until a field ownership conflict is over. */
  backoff: { repairMs: number; replacementMs: number; conflictOverMs: number };
  /** What the last poll says about drift being unknown; undefined before the first. */
  driftUnknown: NewCondition | undefined;
  /** How long from now a refresh is due; undefined for kinds that do none. */
  refreshMs: number | undefined;
  /** Whether a new version of the program may reach the object now. */
  rolledOut: boolean;
  /** The reason in the object's plan, if it has one and that is of this generation. */
  planReason: string | undefined;
}

/** What a comparison is of, besides the object and what it is made of: it holds only while that is the same. */
export function comparedState({ metadata, mode, releases, ignoreFields, drift }: Facts): string {
  return JSON.stringify([mode, metadata.deletionTimestamp !== undefined, releases, ignoreFields, drift.contents]);
}
