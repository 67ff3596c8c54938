import type { NewCondition } from "../../stacks/contract/condition";
import type { Cause } from "./conditions";

/** What a reconcile does about an object: the decision that {@link decide} makes. */
export type Action =
  /** Only the status may need a correction. */
  | { type: "nothing"; conditions: readonly NewCondition[]; requeueAfterMs: number }
  /** A repair is due and has to wait. */
  | { type: "backOff"; conditions: readonly NewCondition[]; requeueAfterMs: number }
  /** The blockers of the last attempt are still there. */
  | { type: "wait"; requeueAfterMs: number }
  | { type: "pause"; conditions: readonly NewCondition[] }
  /** The object is only observed: the status tells what an update would do. */
  | { type: "preview" }
  /** That the deletion leaves the resources is recorded first: a process that restarts could not tell. */
  | { type: "recordOrphan" }
  /** Only the finalizer is missing. */
  | { type: "addFinalizer" }
  | UpdateAction
  | DestroyAction;

/** Which changes become a plan first. */
export type Gate = "none" | "destructive" | "all";

/**
 * An update. To finish is one of an object that is to be deleted: one that was cut off may have made what the state does not have,
 * or the state is lost. The same update once more takes that over, and the next reconcile destroys it.
 */
export interface UpdateAction {
  type: "update" | "finish";
  /** See {@link gated}. */
  gate: Gate;
  cause: Cause;
  /** Compare the state with the real world first. */
  refresh: boolean;
  /** Whether only the program is new: it may wait for a rollout to reach the object. */
  onlyProgram: boolean;
  /** Whether something is missing, and only by the caches: the API server may have it. */
  onlyLacking: boolean;
  /** Ids of resources that completed by themselves and are replaced. */
  replaced: readonly string[];
  /** Ids of resources that completed by themselves and are not replaced yet. */
  postponed: readonly string[];
  /** Whether an earlier update may have left resources in no state. */
  mayHaveUntracked: boolean;
  /**
   * Whether the object is reconciled once more after a success: until this update is recorded, the resources of a predecessor
   * are not maintained, nor removed where they are too many, and no event of them follows.
   */
  looksAgain: boolean;
  progressReport: ProgressReport;
}

/**
 * When the status says that an update runs: before it begins, where after a crash nothing else would show that
 * it had begun; beside it, which takes no time of its own; or only when it takes long, which saves a write.
 */
export type ProgressReport = "before" | "beside" | "late";

export interface DestroyAction {
  type: "destroy";
  gate: Gate;
  /** Leave the resources as they are. */
  release: boolean;
  mayHaveUntracked: boolean;
  /** Whether an earlier destroy has reported its progress, or there is no object whose status could say it. */
  progressReported: boolean;
}
