import { type Failure, failureOf } from "../../providers/errors";
import { type Fence, noFence } from "../../providers/fence";
import { ApiError, isUnknownKind, type LiveObject, type ObjectType } from "../../providers/kubernetes/client";
import { type AnyKind, kindName, statusOf } from "../../stacks/contract/kind";
import { stackName } from "../../stacks/contract/object";
import type { ObjectChange } from "../cache/change";
import type { ProvenFreshness } from "../cache/freshness";
import type { Informer } from "../cache/informer";
import type { InformerFactory } from "../cache/informer-factory";
import type { WorkQueue } from "../queue/work-queue";
import type { Shards } from "../sharding/shards";
import type { Metrics } from "../telemetry/metrics";
import type { KindContext, Result } from "./context";
import type { EventRecorder } from "./event-recorder";
import type { ReadSettings } from "./modes";
import {
  isDeletedInSpiteOfFinalizer,
  isDeletedWithItsStack,
  isRestored,
  type ObjectItem,
  objectItem,
  reconcilesAfter,
} from "./object-item";
import { BURST_DELAY_MS, type OwnerIndex } from "./owner-index";
import type { Reconciler } from "./reconcile";
import type { RolloutPolicy } from "./rollout";

/** What all controllers of an operator share. */
export interface ControllerEnvironment
  extends Pick<
    KindContext,
    "client" | "cluster" | "engine" | "backend" | "forgetDestroyed" | "plans" | "planKey" | "claims" | "logger"
  > {
  /** What is this replica's to work on; everything without. */
  shards?: Pick<Shards, "holds" | "work"> | undefined;
  /** How a new version of a program reaches its objects; without it, all at once. */
  rollout?: RolloutPolicy | undefined;
  readSettings: ReadSettings;
  informers: InformerFactory;
  owners: OwnerIndex;
  queue: WorkQueue<ObjectItem>;
  recorder: EventRecorder;
  metrics: Metrics;
}

/** Reconciles the objects of one kind. */
export class Controller {
  /** The last states of objects that were deleted in spite of their finalizer, until their stacks are destroyed. */
  readonly #tombstones = new Map<string, LiveObject>();

  constructor(
    readonly kind: AnyKind,
    private readonly environment: ControllerEnvironment,
    private readonly objects: Informer,
    /** Of what the kind watches and refers to, which end with the controller; and of what it owns, which kinds share. */
    private readonly informers: { own: readonly Informer[]; owned: readonly Informer[] },
    private readonly freshness: Pick<ProvenFreshness, "reset" | "wrote">,
    private readonly reconciler: Reconciler,
    /** Of the types that the kind owns, those that the API server did not serve: nothing watches them. */
    readonly unserved: readonly ObjectType[],
  ) {}

  list(): LiveObject[] {
    return this.objects.list();
  }

  get(key: string): LiveObject | undefined {
    return this.objects.get(key);
  }

  /**
   * Why a change of what an object made, or depends on, would not be seen, where the API server says why; one that does not answer
   * takes no status either.
   */
  unseenOf(object: LiveObject): Failure | undefined {
    const { own, owned } = this.informers;
    const failure = [this.objects, ...owned, ...own]
      .map(({ failure }) => failure)
      // Of what it owns, a type that is not served matters to the objects that have some of it.
      .find((one) => one instanceof ApiError && one.status !== 0 && !isUnknownKind(one));
    const unwatched = own.find(({ refusal }) => refusal !== undefined)?.refusal;
    if (failure !== undefined || unwatched !== undefined) return failureOf(failure ?? unwatched);
    if (this.unserved.length === 0 && owned.every(({ refusal }) => refusal === undefined)) return undefined;
    const { resources = [] } = statusOf(object).stack ?? {};
    const [unserved] = resources.flatMap(({ id }) => this.environment.owners.unserved(id) ?? []);
    return unserved && failureOf(unserved);
  }

  /** Whether an object is this replica's to work on. */
  holds(key: string): boolean {
    return this.environment.shards?.holds(this.#shardKey(key)) ?? true;
  }

  /** See {@link KindCache.tombstone}. */
  tombstone(key: string): LiveObject | undefined {
    return this.#tombstones.get(key);
  }

  /** Reconciles an object; requeues it as it asks for. */
  async reconcile(item: ObjectItem, signal: AbortSignal): Promise<void> {
    const { metrics, shards } = this.environment;
    const labels = { controller: kindName(this.kind) };
    metrics.activeWorkers.inc(labels);
    const stopTimer = metrics.reconcileTime.startTimer(labels);
    try {
      const work = (signal: AbortSignal, fence: Fence) => this.reconciler.reconcile(item, signal, fence);
      const tombstone = this.#tombstones.get(item.key);
      const result =
        shards === undefined
          ? await work(signal, noFence())
          : await shards.work(this.#shardKey(item.key), signal, work);
      if (result === undefined) return; // another replica's now
      // One that is gone only since then is still to be reconciled.
      if (result === "done" && tombstone !== undefined) this.#dropTombstone(item.key, tombstone);
      this.#requeue(item, result);
      const isDelayed = typeof result === "object" && "requeueAfterMs" in result;
      const outcome = result === "done" ? "success" : isDelayed ? "requeue_after" : "requeue";
      metrics.reconcileTotal.inc({ ...labels, result: outcome });
    } catch (error) {
      metrics.reconcileTotal.inc({ ...labels, result: "error" });
      metrics.reconcileErrors.inc(labels);
      throw error; // the queue logs it and backs off
    } finally {
      stopTimer();
      metrics.activeWorkers.dec(labels);
    }
  }

  /** Reconciles an object again although its last failure was terminal: what it ran into may be gone. */
  reconsider(item: ObjectItem): void {
    this.reconciler.reconsider(item.key);
    this.environment.queue.add(item);
  }

  /** Ends its informers; objects of other kinds do not wait for a try of one of these. */
  stop(): void {
    const { informers, metrics } = this.environment;
    informers.stop([this.objects, ...this.informers.own]);
    this.shardsReleased(() => true);
    for (const object of this.list()) {
      metrics.objectChanged(kindName(this.kind), { type: "deleted", object, previous: object });
    }
  }

  /** These shards are ours from now on: reconciles all their objects. */
  shardsAcquired(includes: (shardKey: string) => boolean): void {
    this.freshness.reset();
    for (const item of this.#itemsOf(includes)) this.environment.queue.add(item);
  }

  /** Another replica works on these shards from now on: drops what is known of their objects. */
  shardsReleased(includes: (shardKey: string) => boolean): void {
    for (const item of this.#itemsOf(includes)) this.#drop(item);
  }

  /** The API server's data was restored from a backup, or the state's backend replaced: what this process knows is outdated. */
  restored(): void {
    this.freshness.reset();
    for (const item of this.#itemsOf(() => true)) {
      this.reconciler.drop(item.key);
      this.environment.queue.add(item);
    }
  }

  /** Takes in what a poll found of an object. @param drift what is not as it should be @param failure why that is unknown */
  driftPolled(
    object: LiveObject,
    drift: string | undefined,
    failure: Pick<Failure, "reason" | "message"> | undefined,
  ): void {
    const item = objectItem(this.kind, object.metadata);
    if (this.get(item.key) !== object) return; // gone or changed meanwhile: the next poll compares it as it is now
    if (this.reconciler.noteDriftPoll(object, drift, failure)) this.environment.queue.add(item);
  }

  /** Takes in whether the backend lists the stack that an object names. */
  stackSurveyed(object: LiveObject, isListed: boolean): void {
    const item = objectItem(this.kind, object.metadata);
    if (this.get(item.key)?.metadata.uid !== object.metadata.uid) return;
    if (this.reconciler.noteStackSurvey(object, isListed)) this.environment.queue.add(item);
  }

  objectChanged(change: ObjectChange): void {
    const { claims, logger, metrics, owners, queue } = this.environment;
    metrics.objectChanged(kindName(this.kind), change);
    const { uid } = change.object.metadata;
    const item = objectItem(this.kind, change.object.metadata);
    if (change.type === "deleted") {
      if (
        isDeletedWithItsStack(change) &&
        this.holds(item.key) &&
        !this.reconciler.hasRemovedFinalizer(item.key, uid)
      ) {
        logger.warn(
          { kind: kindName(this.kind), key: item.key },
          "finalizer was removed by another: resources and stack stay",
        );
      }
      this.#noteEnd(change, item.key);
      this.reconciler.stopUpdate(change.object);
      claims.drop(uid, item); // an object that lost its finalizer by force was never destroyed
      this.#drop(item);
      if (isDeletedInSpiteOfFinalizer(change)) {
        logger.warn({ kind: kindName(this.kind), key: item.key }, "object was deleted in spite of its finalizer");
        // Also of another replica's shard, which may become this one's before the stack is destroyed.
        const metadata = { ...change.object.metadata, deletionTimestamp: new Date().toISOString() };
        this.#tombstones.set(item.key, { ...change.object, metadata });
      } else {
        owners.drop(uid);
      }
    } else {
      owners.set(uid, item);
      if (this.#tombstones.get(item.key)?.metadata.uid === uid) this.#tombstones.delete(item.key); // restored from a backup
      if (isRestored(change)) this.reconciler.noteRestored(item.key);
      this.reconciler.noteChange(change.object);
    }
    const when = reconcilesAfter(change, (object) => this.reconciler.hasOwnStatus(object));
    if (when === "now") {
      if (change.type === "modified") queue.forget(item);
      queue.add(item);
    } else if (when === "soon") {
      queue.addAfter(item, BURST_DELAY_MS);
    }
  }

  /** The objects of these shards, also those that are gone but whose stacks are not destroyed. */
  #itemsOf(includes: (shardKey: string) => boolean): ObjectItem[] {
    return [...this.list(), ...this.#tombstones.values()]
      .map(({ metadata }) => objectItem(this.kind, metadata))
      .filter(({ key }) => includes(this.#shardKey(key)));
  }

  /**
   * The name by whose hash an object belongs to a shard. Objects that may claim the same ({@link ExclusiveClaims}) go
   * together, whatever their kinds: who came first is known in one process only.
   */
  #shardKey(key: string): string {
    return this.kind.capabilities.claims === undefined ? stackName(this.kind, key) : "claims";
  }

  #drop(item: ObjectItem): void {
    this.reconciler.drop(item.key);
    this.environment.queue.abandon(item);
  }

  /**
   * Takes in the end of an object whose finalizer this process has removed: the cache shows all that was there before. The answer
   * to the removal does not prove that, as it has the version before.
   */
  #noteEnd({ object, reported }: Extract<ObjectChange, { type: "deleted" }>, key: string): void {
    const { uid, resourceVersion: version } = object.metadata;
    const sentAt = this.reconciler.removesFinalizerSince(key, uid);
    if (reported && sentAt !== undefined) this.freshness.wrote({ version, sentAt });
  }

  /** Nothing is left of an object that was deleted in spite of its finalizer. */
  #dropTombstone(key: string, tombstone: LiveObject): void {
    this.environment.owners.drop(tombstone.metadata.uid);
    if (this.#tombstones.get(key) === tombstone) this.#tombstones.delete(key); // else a successor went the same way
  }

  #requeue(item: ObjectItem, result: Result): void {
    const { queue } = this.environment;
    if (result === "retry") queue.addRateLimited(item);
    else if (typeof result === "object" && "dependency" in result) queue.addWhenBack(item, result.dependency);
    else {
      queue.endRetries(item);
      if (result !== "done") queue.addAfter(item, result.requeueAfterMs);
    }
  }
}
