import { errorMessageOf, type Failure, RetryableError } from "../../providers/errors";
import type { Fence } from "../../providers/fence";
import type { LiveObject } from "../../providers/kubernetes/client";
import { findCondition } from "../../stacks/contract/condition";
import { kindName, statusOf } from "../../stacks/contract/kind";
import { objectKey } from "../../stacks/contract/object";
import { withUnhandled } from "../automation/unhandled";
import { apply } from "./apply";
import { collectFacts } from "./collect-facts";
import { driftUnknownCondition, isReported } from "./conditions";
import { isOutdated, type KindContext, type Reconcile, type Result } from "./context";
import { decide, maintainsBefore } from "./decide";
import { correctOwnerReferences, maintain } from "./maintain";
import { STATE_MISSING } from "./missing-state";
import type { ObjectItem } from "./object-item";
import { ObjectState } from "./object-state";
import type { Outcome } from "./outcome";
import { record } from "./record";
import { removeUntracked } from "./remove-untracked";
import { withinFence } from "./work";

/**
 * Brings the stacks of one kind's objects in line with the objects: from the queue's item to the engine, and back to the
 * status.
 *
 * Level-based: each reconcile reads the present state, decides what that calls for, does it, and records what came of it.
 * A reconcile of an object that needs nothing reads caches and writes nothing.
 */
export class Reconciler {
  /** What this process knows of objects beyond what their caches show, by key. */
  readonly #states = new Map<string, ObjectState>();

  constructor(private readonly context: KindContext) {}

  reconcile(item: ObjectItem, signal: AbortSignal, fence: Fence): Promise<Result> {
    return withUnhandled(
      (error) => this.#tellUnhandled(item.key, error),
      () => this.#reconcile(item, signal, fence),
    );
  }

  async #reconcile(item: ObjectItem, signal: AbortSignal, fence: Fence): Promise<Result> {
    const state = this.#stateOf(item.key);
    try {
      const observed = await collectFacts(this.context, item, state, signal);
      if (observed === undefined) {
        if (this.context.cache.object(item.key) === undefined) this.drop(item.key);
        return "done";
      }
      const stop = new AbortController();
      const reconcile = withinFence({ ...observed, stop: stop.signal }, fence);
      const { uid, deletionTimestamp } = observed.object.metadata;
      if (deletionTimestamp === undefined) state.running = { uid, stop };
      if (reconcile.waiting !== undefined) reconcile.state.blockers?.looked(reconcile.waiting);
      const againMs = [reconcile.facts.object.isTombstone ? 0 : await correctOwnerReferences(reconcile)];
      const action = decide(reconcile.facts);
      againMs.push(maintainsBefore(reconcile.facts, action) ? await maintain(reconcile) : 0);
      const isUnchanged = unchangedSince(reconcile);
      const applied = await removeUntracked(reconcile, await apply(reconcile, action));
      const outcome: Outcome = applied.type === "updateFailed" && !isUnchanged() ? { type: "stale" } : applied;
      const result = await record(reconcile, outcome);
      againMs.push(unansweredMs(reconcile));
      this.context.rollout?.reconciled(item.key, reconcile.facts, action, outcome);
      if (outcome.type === "destroyed") this.#noteDestroyed(item.key, reconcile.object.metadata.uid);
      return againMs.filter((ms) => ms > 0).reduce<Result>(earlier, result);
    } catch (error) {
      if (isOutdated(error) || signal.aborted) return "retry";
      throw error;
    } finally {
      state.running = undefined;
    }
  }

  /**
   * Notes what a poll found of an object, see {@link Controller.driftPolled}.
   *
   * @returns whether the object needs a reconcile: to repair it, or to report that drift is unknown, or known again
   */
  noteDriftPoll(
    object: LiveObject,
    drift: string | undefined,
    failure: Pick<Failure, "reason" | "message"> | undefined,
  ): boolean {
    const state = this.#stateOf(objectKey(object.metadata));
    const before = state.polledDrift;
    state.polledDrift = failure === undefined ? drift : (drift ?? before);
    state.driftUnknown = driftUnknownCondition(failure);
    return (
      drift !== undefined ||
      before !== state.polledDrift ||
      !isReported(statusOf(object).conditions, state.driftUnknown)
    );
  }

  /**
   * Notes whether the backend lists the stack that an object names.
   *
   * @returns whether the object needs a reconcile: the stack may be lost, or there again
   */
  noteStackSurvey(object: LiveObject, isListed: boolean): boolean {
    const key = objectKey(object.metadata);
    const isTold = findCondition(statusOf(object).conditions, "Synced")?.reason === STATE_MISSING;
    if (isListed) {
      const state = this.#states.get(key);
      const before = state?.stackUnlisted ?? false;
      if (state !== undefined) state.stackUnlisted = false;
      if (isTold) this.reconsider(key);
      return isTold || before;
    }
    if (isTold) return false;
    const state = this.#stateOf(key);
    const before = state.stackUnlisted;
    state.stackUnlisted = true;
    return !before;
  }

  /**
   * Notes what the cache shows of an object. A state may say how it is deleted, which the garbage collector may remove before
   * a reconcile.
   */
  noteChange(object: LiveObject): void {
    this.#states.get(objectKey(object.metadata))?.writes.shown(object);
    const { deletionTimestamp, finalizers } = object.metadata;
    if (deletionTimestamp !== undefined) this.stopUpdate(object);
    const isOrphaned = deletionTimestamp !== undefined && finalizers?.includes("orphan");
    if (isOrphaned) this.#stateOf(objectKey(object.metadata)).orphaned ??= "seen";
  }

  /** Ends the update that runs of an object: it is deleted, or gone. */
  stopUpdate({ metadata }: LiveObject): void {
    const running = this.#states.get(objectKey(metadata))?.running;
    if (running?.uid === metadata.uid) {
      running.stop.abort(new RetryableError("Interrupted", "the object of this update is deleted"));
    }
  }

  /** Takes in that an object was restored from a backup: its resources are those of a spec that came later. */
  noteRestored(key: string): void {
    this.drop(key);
    this.#stateOf(key).refreshes.request(performance.now());
  }

  /** Whether an object has the status that this process wrote last. */
  hasOwnStatus(object: LiveObject): boolean {
    return this.#states.get(objectKey(object.metadata))?.writes.hasOwnStatus(object) ?? false;
  }

  /** Whether this process has removed the finalizer of the object of this UID. */
  hasRemovedFinalizer(key: string, uid: string): boolean {
    const state = this.#states.get(key);
    return state?.finalizerRemoval?.uid === uid || state?.destroyed === uid;
  }

  /** Since when this process removes the finalizer of the object of this UID (`performance.now()`). */
  removesFinalizerSince(key: string, uid: string): number | undefined {
    const removal = this.#states.get(key)?.finalizerRemoval;
    return removal?.uid === uid ? removal.since : undefined;
  }

  /** Drops all that is known of an object: it is gone, or is another replica's. */
  drop(key: string): void {
    this.#states.delete(key);
    this.context.rollout?.drop(key);
  }

  /** The last attempt may not be terminal any more: what it ran into may be gone. */
  reconsider(key: string): void {
    const state = this.#states.get(key);
    if (state === undefined) return;
    state.lastAttempt = undefined;
    state.reconsidered++;
  }

  /** Code of a kind or a provider has failed where nothing waits for it, perhaps after the reconcile. */
  #tellUnhandled(key: string, error: unknown): void {
    const { cache, kind, logger, writer } = this.context;
    logger.error({ err: error, kind: kindName(kind), object: key }, "unhandled error in the work for an object");
    const object = cache.object(key);
    const note = `an error that nothing awaits: ${errorMessageOf(error)}`;
    if (object !== undefined) writer.event(object, "Warning", "InternalError", note);
  }

  /** All that matters of an object now is that it is not destroyed again, until the cache shows that it is gone. */
  #noteDestroyed(key: string, uid: string): void {
    this.drop(key);
    if (this.context.cache.object(key)?.metadata.uid === uid) this.#stateOf(key).destroyed = uid;
  }

  #stateOf(key: string): ObjectState {
    const state = this.#states.get(key) ?? new ObjectState();
    this.#states.set(key, state);
    return state;
  }
}

/** Tells whether what a failure may depend on is as it is now: one that a change since then may have healed says nothing. */
function unchangedSince({ context, item, state }: Pick<Reconcile, "context" | "item" | "state">): () => boolean {
  const [watched, { reconsidered }] = [context.cache.watched(item.key), state];
  return () =>
    state.reconsidered === reconsidered && identities(context.cache.watched(item.key)) === identities(watched);
}

/** Which objects these are, and which of them have begun to be deleted. */
function identities(objects: readonly LiveObject[]): string {
  return objects
    .map(({ metadata }) => `${metadata.uid} ${metadata.deletionTimestamp ?? ""}`)
    .sort()
    .join();
}

/** When to ask the kind's code again for what it has not answered; 0 where it has. */
function unansweredMs({ facts, state }: Pick<Reconcile, "facts" | "state">): number {
  const forStatus = state.unanswered && state.unanswered.notBefore - performance.now();
  const all = [facts.drift.unansweredMs, forStatus].filter((ms) => ms !== undefined);
  return all.length === 0 ? 0 : Math.max(1, Math.min(...all));
}

/** What a reconcile asks for, but after `ms` at the latest, unless it is tried again with back-off. */
function earlier(result: Result, ms: number): Result {
  if (result === "done") return { requeueAfterMs: ms };
  if (typeof result === "object" && "requeueAfterMs" in result) {
    return { requeueAfterMs: Math.min(ms, result.requeueAfterMs) };
  }
  return result;
}
