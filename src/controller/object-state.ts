import type { CodeEndedError } from "../../stacks/contract/code-ended";
import type { NewCondition } from "../../stacks/contract/condition";
import type { Blockers } from "./blockers";
import type { Attempt, ObjectFacts, Preview } from "./facts";
import type { ProgramReads } from "./kind-cache";
import { Expectations, ReadYourWrites } from "./own-writes";
import { DriftBackoff, Refreshes, Repairs } from "./repairs";

/**
 * What this process knows of one object beyond what its caches show. A restart forgets it: what a successor needs is also in
 * the object (its status and annotations).
 */
export class ObjectState {
  /** When this process first saw the object, by `performance.now()`. */
  readonly #since = performance.now();
  lastAttempt: Attempt | undefined;
  /** The reconcile that runs of an object that is not deleted; its deletion ends the update. */
  running: { uid: string; stop: AbortController } | undefined;
  /** The UID of the object whose deletion has ended its update, where the state has all that was made. */
  recorded: string | undefined;
  /** What the last attempt has read besides the spec; before the first, the status says it of the last success. */
  reads: ProgramReads | undefined;
  lastPreview: Preview | undefined;
  /** Counts the times when the reason of a terminal failure may have gone. */
  reconsidered = 0;
  /** Of a kind with {@link Capabilities.refreshEvery}, and of an object that was restored from a backup. */
  readonly refreshes = new Refreshes(this.#since);
  /** See {@link StackFacts.unlisted}. */
  stackUnlisted = false;
  /** Set by an update, or a destroy, that has to wait for something else to end. */
  blockers: Blockers | undefined;
  /** The UID of the object whose stack was destroyed: its finalizer is removed, though the cache may still show it. */
  destroyed: string | undefined;
  /** The object whose finalizer this process removes, and since when (`performance.now()`). */
  finalizerRemoval: { uid: string; since: number } | undefined;
  /** That a deletion with the propagation policy `Orphan` was seen, which the API server forgets soon, or is recorded. */
  orphaned: ObjectFacts["orphaned"];
  /** Set by a poll, for drift that no watch shows: what is not as it should be. */
  polledDrift: string | undefined;
  /** What the last poll says about drift being unknown; undefined before the first. */
  driftUnknown: NewCondition | undefined;
  readonly repairs = new Repairs(this.#since);
  /** The first that completes is replaced at once; another soon after it has to wait. */
  readonly replacements = new DriftBackoff();
  readonly expectations = new Expectations();
  /** Of the object itself. */
  readonly writes = new ReadYourWrites();
  /** Of what the kind maintains besides the stack, and when that was written last, by `performance.now()`. */
  readonly maintained = new ReadYourWrites();
  maintainedAt = Number.NEGATIVE_INFINITY;
  /** Set while the kind's code has not answered what the last status was to say. */
  unanswered: CodeEndedError | undefined;
  #memory: Map<string, unknown> | undefined;

  /** The kind's own; made when it is asked for. */
  get memory(): Map<string, unknown> {
    this.#memory ??= new Map();
    return this.#memory;
  }
}
