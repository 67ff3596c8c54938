import { setMaxListeners } from "node:events";
import { setInterval } from "node:timers";
import { isDeepStrictEqual } from "node:util";
import type { Logger } from "pino";
import {
  FIELD_MANAGER,
  type KubernetesClient,
  type LiveObject,
  type ResourceType,
} from "../../providers/kubernetes/client";
import { clusterUid } from "../../providers/kubernetes/cluster";
import { OWNER_ANNOTATION, OWNER_UID_LABEL, ownerUidOf } from "../../providers/kubernetes/ownership";
import { findCondition } from "../../stacks/contract/condition";
import { programDigest } from "../../stacks/contract/digest";
import {
  type AnyKind,
  kindApiVersion,
  kindName,
  type Observation,
  ownerDescription,
  statusOf,
} from "../../stacks/contract/kind";
import {
  DELETION_POLICY_ANNOTATION,
  type KindObject,
  namespaceOf,
  objectId,
  objectKey,
  PAUSED_ANNOTATION,
  RECONCILE_ANNOTATION,
  stackName,
} from "../../stacks/contract/object";
import type { StackEngine, UpdateResult } from "../automation/engine";
import { keysAsShown } from "../cache/freshness";
import { Informer, type ObjectChange } from "../cache/informer";
import { Claims } from "../controller/claims";
import type { Outcome } from "../controller/context";
import type { OwnedView } from "../controller/drift";
import type { EventRecorder } from "../controller/event-recorder";
import { FINALIZER } from "../controller/finalizer";
import { Reconciler } from "../controller/reconcile";
import { GroupBackoff } from "../queue/group-backoff";
import { type Lane, WorkQueue } from "../queue/work-queue";
import { Placement } from "../runner/assignment";
import { Batches, partitionOfPlace } from "../runner/shared-stacks";
import type { Sharing } from "../runner/stack-runner";
import type { Shards } from "../sharding/shards";
import type { Metrics } from "../telemetry/metrics";

export interface OperatorOptions {
  kinds: readonly AnyKind[];
  client: KubernetesClient;
  engine: Pick<StackEngine, "up" | "destroy" | "recorded" | "forget">;
  recorder: EventRecorder;
  metrics: Metrics;
  logger: Logger;
  /** What is this replica's to work on; all of it when it is the only one. */
  shards?: Shards | undefined;
  /** Among how many partitions the namespaces are spread whose objects share stacks; without it, each is one. */
  stackPartitions?: number | undefined;
  /** Objects that are worked on at the same time. */
  concurrency: number;
  /** How often kinds are asked for drift that no watch shows. */
  driftIntervalMs: number;
  /** How often all that is watched is listed again; 30 min by default. */
  relistIntervalMs?: number;
  /** How long running updates may go on after the stop before they are interrupted. */
  gracePeriodMs: number;
}

/** One kind at work. */
interface Controller {
  kind: AnyKind;
  informer: Informer;
  reconciler: Reconciler;
  /** For a kind whose objects share stacks. */
  sharing: Sharing | undefined;
  /** Of what the kind observes, indexed by the keys of the objects that it is for. */
  observers: Informer[];
}

/** What controllers call it in metrics. */
const RESULTS = { done: "success", retry: "requeue" } as const;
const OWNED_EVENT_DELAY_MS = 25;
const OWNER_INDEX = "owner";
const DESCRIPTION_INDEX = "description";
const UID_INDEX = "uid";
const KEY_INDEX = "key";

/**
 * The watcher: informers fill caches and put names in the queue, workers take names and reconcile.
 *
 * ```
 *   custom resources ─┐
 *   owned objects ────┼→ queue of names → reconcile → engine (up, destroy) → status
 *   drift queries ────┘
 * ```
 */
export class Operator {
  readonly #options: OperatorOptions;
  readonly #queue: WorkQueue;
  readonly #groups = new GroupBackoff({ retry: (queueKey) => this.#queue.add(queueKey) });
  readonly #claims: Claims;
  readonly #controllers = new Map<string, Controller>();
  /** Informers of owned objects, by `apiVersion/kind`; kinds that own the same type share one. */
  readonly #owned = new Map<string, Informer>();
  #cluster: string | undefined;
  #stopping = false;
  #findsDrift = false;

  constructor(options: OperatorOptions) {
    this.#options = options;
    const { logger, metrics } = options;
    this.#queue = new WorkQueue({
      logger,
      observer: metrics.workQueue("kindstack"),
      laneOf: (queueKey) => this.#laneOf(queueKey),
      accepts: (queueKey) => this.#accepts(queueKey),
    });
    const wake = (queueKey: string) => {
      const [controller, key] = this.#locate(queueKey);
      controller.reconciler.reconsider(key);
      this.#queue.add(queueKey);
    };
    this.#claims = new Claims(wake, (uid) => this.#findOwner(uid) !== undefined);
  }

  /** Why the operator does not work yet, or any more; `undefined` when it does, or would if something were its own. */
  get notReady(): string | undefined {
    if (this.#stopping) return "stopping";
    const waiting = this.#informers().filter(({ hasSynced }) => !hasSynced);
    return waiting.length > 0 || this.#controllers.size === 0 ? "caches are being filled" : undefined;
  }

  /** The objects of a kind, as the cache shows them. */
  objects(kind: AnyKind): LiveObject[] {
    return this.#controllers.get(kindName(kind))?.informer.list() ?? [];
  }

  object(kind: AnyKind, key: string): LiveObject | undefined {
    return this.#controllers.get(kindName(kind))?.informer.get(key);
  }

  /** What the caches show of an owned object, by its id; `undefined` when its type is not watched. */
  view(id: string): OwnedView | undefined {
    const parts = id.split("/");
    const name = parts.pop() ?? "";
    const namespace = parts.pop() ?? "";
    const informer = this.#owned.get(parts.join("/"));
    if (informer === undefined) return undefined;
    return { object: informer.get(objectKey({ name, namespace })), cacheVersion: informer.resourceVersion };
  }

  /**
   * Works until `signal` is aborted, then lets running updates finish for the grace period and interrupts the rest.
   *
   * @throws ApiError when a kind is not installed in the cluster
   */
  async run(signal: AbortSignal): Promise<void> {
    const { client, logger, kinds, concurrency, gracePeriodMs, recorder, metrics, shards } = this.#options;
    this.#cluster = await clusterUid(client);
    for (const kind of kinds) {
      await this.#addKind(kind);
      metrics.maxConcurrentReconciles.set({ controller: kindName(kind) }, concurrency);
    }
    setMaxListeners(0, signal); // each informer listens to it, and how many those are depends on the kinds
    const informers = this.#informers().map((informer) => informer.start(signal));
    await Promise.all(this.#informers().map(({ synced }) => synced));
    logger.info({ kinds: kinds.map(kindName), objects: this.#objects() }, "caches are filled");

    const driftTimer = setInterval(() => void this.#lookForDrift(), this.#options.driftIntervalMs);
    const interrupt = new AbortController();
    setMaxListeners(0, interrupt.signal); // each piece of work listens to it
    const onStop = () => {
      this.#stopping = true;
      logger.info({ running: this.#queue.running }, "stopping");
      for (const { sharing } of this.#controllers.values()) sharing?.batches.stop();
      setTimeout(() => interrupt.abort(), gracePeriodMs).unref();
      shards?.leave();
    };
    const sharing = shards?.run((includes) => this.#lookAt(includes));
    if (signal.aborted) onStop();
    signal.addEventListener("abort", onStop, { once: true });
    await this.#queue.run(concurrency, (queueKey) => this.#work(queueKey, interrupt.signal), signal);
    clearInterval(driftTimer);
    this.#groups.stop();
    await Promise.all([...informers, sharing]);
    await recorder.flush();
  }

  async #addKind(kind: AnyKind): Promise<void> {
    const { client, engine, logger, recorder, metrics } = this.#options;
    const type = await client.resourceType(kindApiVersion(kind), kind.kind);
    for (const owned of kind.owns) await this.#watchOwned(owned);
    const observers = await Promise.all((kind.observes ?? []).map((observation) => this.#observer(kind, observation)));
    const name = kindName(kind);
    const sharing = kind.granularity === "namespace" ? this.#share(kind, type) : undefined;
    const informer: Informer = new Informer({
      relistIntervalMs: this.#options.relistIntervalMs,
      client,
      type,
      logger,
      indexers: { [UID_INDEX]: ({ metadata }) => [metadata.uid] },
      transform: withoutManagedFields,
      onChange: (change) => {
        metrics.objects.changed(name, change);
        const key = objectKey(change.object.metadata);
        const queueKey = queueKeyOf(kind, key);
        if (change.type === "deleted") {
          // Who lost its finalizer by force was never destroyed; it holds nothing any more all the same.
          this.#claims.forget(change.object.metadata.uid, queueKey);
          sharing?.placement.gone(key);
          reconciler.forget(key);
          this.#queue.forget(queueKey);
          this.#groups.left(queueKey);
        } else {
          sharing?.placement.seen(change.object);
        }
        if (needsReconcile(change)) {
          if (change.type === "modified") this.#queue.forget(queueKey);
          this.#queue.add(queueKey);
        } else if (change.type === "modified" && hasOtherStatus(change) && !reconciler.hasOwnStatus(change.object)) {
          this.#queue.addAfter(queueKey, OWNED_EVENT_DELAY_MS);
        }
      },
      observer: metrics.informer(name, () => informer.lastContact),
    });
    const reconciler = new Reconciler({
      kind,
      type,
      program: programDigest(kind),
      client,
      cluster: this.#cluster,
      engine,
      ...(sharing && { sharing }),
      claims: this.#claims,
      recorder,
      logger,
      cached: (key) => informer.get(key),
      queueKey: (key) => queueKeyOf(kind, key),
      owned: (uid) => this.#ownedBy(kind, uid),
      observed: (key) => observers.flatMap((observer) => observer.byIndex(KEY_INDEX, key)),
      view: (id) => this.view(id),
      describeOwner: (uid) => this.#describeOwner(uid),
      observe: (result, cause) => this.#observe(kind, result, cause),
    });
    this.#controllers.set(name, { kind, informer, reconciler, sharing, observers });
  }

  #share(kind: AnyKind, type: ResourceType): Sharing {
    const { client, engine, stackPartitions: partitions } = this.#options;
    const placement = new Placement(kind, { partitions });
    return {
      placement,
      batches: new Batches({
        kind,
        engine,
        asShown: (objects) => keysAsShown(client, type, objects, (namespace) => placement.total(namespace)),
        enqueue: (place) => this.#queue.add(batchKeyOf(kind, place)),
        observe: (result) => this.#countUpdate(kind, result),
      }),
    };
  }

  /** A cache of what a kind observes; its changes put the objects that they are for in the queue. */
  async #observer(kind: AnyKind, observation: Observation): Promise<Informer> {
    const { client, logger, metrics } = this.#options;
    const { apiVersion, kind: type, labelSelector } = observation;
    const observer: Informer = new Informer({
      relistIntervalMs: this.#options.relistIntervalMs,
      client,
      type: await client.resourceType(apiVersion, type),
      labelSelector,
      indexers: { [KEY_INDEX]: (object) => observation.keysOf(object) },
      transform: withoutManagedFields,
      logger,
      onChange: (change) => {
        const states = change.type === "added" ? [change.object] : [change.previous, change.object];
        for (const key of new Set(states.flatMap((object) => observation.keysOf(object)))) {
          this.#queue.addAfter(queueKeyOf(kind, key), OWNED_EVENT_DELAY_MS);
        }
      },
      observer: metrics.informer(`${apiVersion}/${type}?${labelSelector}`, () => observer.lastContact),
    });
    return observer;
  }

  async #watchOwned({ apiVersion, kind }: { apiVersion: string; kind: string }): Promise<void> {
    const name = `${apiVersion}/${kind}`;
    if (this.#owned.has(name)) return;
    const { client, logger, metrics } = this.#options;
    const informer: Informer = new Informer({
      relistIntervalMs: this.#options.relistIntervalMs,
      client,
      type: await client.resourceType(apiVersion, kind),
      labelSelector: OWNER_UID_LABEL,
      indexers: {
        [OWNER_INDEX]: (object) => [ownerUidOf(object) ?? ""],
        [DESCRIPTION_INDEX]: ({ metadata }) => [metadata.annotations?.[OWNER_ANNOTATION] ?? ""],
      },
      transform: withOwnManagedFields,
      logger,
      onChange: (change) => this.#ownedChanged(change),
      observer: metrics.informer(name, () => informer.lastContact),
    });
    this.#owned.set(name, informer);
  }

  /** Puts the owner in the queue, before and after a change of owner; it will see whether anything is to be done. */
  #ownedChanged(change: ObjectChange): void {
    const before = change.type === "added" ? undefined : ownerUidOf(change.previous);
    const after = change.type === "deleted" ? undefined : ownerUidOf(change.object);
    if (before !== undefined && before !== after) this.#claims.released(objectId(change.object));
    for (const uid of new Set([before, after])) {
      const owner = uid === undefined ? undefined : this.#findOwner(uid);
      // A moment later, so that many edits in a row are one repair.
      if (owner !== undefined) this.#queue.addAfter(owner.queueKey, OWNED_EVENT_DELAY_MS);
    }
  }

  /** Puts all objects of these stacks in the queue; another replica may have worked on them since we did. */
  #lookAt(includes: (stack: string) => boolean): void {
    for (const controller of this.#controllers.values()) {
      const { kind, informer, reconciler } = controller;
      for (const { metadata } of informer.list()) {
        const key = objectKey(metadata);
        if (!includes(shareOf(controller, key))) continue;
        reconciler.forget(key);
        this.#groups.left(queueKeyOf(kind, key));
        this.#queue.forget(queueKeyOf(kind, key));
        this.#queue.add(queueKeyOf(kind, key));
      }
    }
  }

  async #work(queueKey: string, signal: AbortSignal): Promise<void> {
    const { metrics, shards } = this.#options;
    const [{ kind, reconciler, sharing }, key] = this.#locate(queueKey);
    if (sharing !== undefined && isBatch(key)) return this.#workOnBatch(queueKey, sharing.batches, signal);
    const labels = { controller: kindName(kind) };
    metrics.activeWorkers.inc(labels);
    const stopTimer = metrics.reconcileTime.startTimer(labels);
    try {
      const work = (signal: AbortSignal) => reconciler.reconcile(key, signal);
      const outcome = (await (shards?.work(this.#shareOf(queueKey), signal, work) ?? work(signal))) ?? "done";
      this.#requeue(queueKey, outcome);
      const result = typeof outcome === "string" ? RESULTS[outcome] : "requeue_after";
      metrics.reconcileTotal.inc({ ...labels, result });
    } catch (error) {
      metrics.reconcileTotal.inc({ ...labels, result: "error" });
      metrics.reconcileErrors.inc(labels);
      throw error; // the queue logs it and backs off
    } finally {
      stopTimer();
      metrics.activeWorkers.dec(labels);
    }
  }

  #requeue(queueKey: string, outcome: Outcome): void {
    if (outcome === "retry") this.#queue.addRateLimited(queueKey);
    else this.#queue.forget(queueKey);
    if (typeof outcome === "object" && "retryWith" in outcome) this.#groups.failed(queueKey, outcome.retryWith);
    else if (outcome === "retry") this.#groups.left(queueKey);
    else this.#groups.succeeded(queueKey);
    if (typeof outcome === "object" && "afterMs" in outcome) this.#queue.addAfter(queueKey, outcome.afterMs);
  }

  /** When the stack is not ours, or not any more, the objects that wait for its update are told. */
  async #workOnBatch(queueKey: string, batches: Batches, signal: AbortSignal): Promise<void> {
    const { shards } = this.#options;
    const share = this.#shareOf(queueKey);
    const place = this.#locate(queueKey)[1].slice(BATCH.length);
    const gatherMs = batches.gatherMs(place);
    if (gatherMs > 0) return this.#queue.addAfter(queueKey, gatherMs);
    if (shards === undefined) return batches.run(place, signal);
    await shards.work(share, signal, (signal) => batches.run(place, signal));
    if (!shards.holds(share)) batches.giveUp(place);
  }

  /** Looks for drift, unless the last look still goes on. */
  async #lookForDrift(): Promise<void> {
    if (this.#findsDrift) return;
    this.#findsDrift = true;
    await this.#findDrift().finally(() => {
      this.#findsDrift = false;
    });
  }

  /** Asks each kind once for all of its objects that are at rest. */
  async #findDrift(): Promise<void> {
    for (const controller of this.#controllers.values()) {
      const { kind, informer, reconciler } = controller;
      if (kind.findDrift === undefined) continue;
      const settled = informer.list().filter((object) => isSettled(object) && this.#isOurs(controller, object));
      if (settled.length === 0) continue;
      try {
        const report = await kind.findDrift(settled as unknown as KindObject[]);
        const drifted = new Set(report.drifted);
        for (const object of settled) {
          const { uid } = object.metadata;
          const isNews = reconciler.noteComparison(object, drifted.has(uid), report.unknown.get(uid));
          if (isNews) this.#queue.add(queueKeyOf(kind, objectKey(object.metadata)));
        }
      } catch (error) {
        this.#options.logger.warn({ err: error, kind: kindName(kind) }, "could not look for drift");
      }
    }
  }

  #observe(kind: AnyKind, result: UpdateResult, cause: string): void {
    const { metrics } = this.#options;
    if (!result.isShare) this.#countUpdate(kind, result);
    for (const [operation, count] of Object.entries(result.changes)) {
      metrics.resourceOperations.inc({ kind: kindName(kind), operation }, count);
    }
    if (cause === "Repairing") metrics.driftRepairs.inc({ kind: kindName(kind) });
  }

  #countUpdate(kind: AnyKind, { operation, outcome, failures, durationMs }: UpdateResult): void {
    const { metrics } = this.#options;
    const waits = failures.length > 0 && failures.every(({ errorClass }) => errorClass === "pending");
    const labels = { kind: kindName(kind), operation, result: waits ? "waiting" : outcome };
    metrics.updates.inc(labels);
    metrics.updateDuration.observe(labels, durationMs / 1000);
  }

  /**
   * What the object of this UID owns, and what was made for an object of its name before it was in the cluster, by
   * `pulumi up` or by a predecessor: the same stack has it, and the next update makes it this object's.
   *
   * Anybody may write these marks on what is his. What a namespaced object owns is in its own namespace, so that nobody
   * pushes out another namespace's Pods by marks on his own.
   */
  #ownedBy(kind: AnyKind, uid: string): LiveObject[] {
    const owner = this.#findOwner(uid)?.object;
    const description = owner && ownerDescription(kind, objectKey(owner.metadata));
    return kind.owns.flatMap(({ apiVersion, kind: type }) => {
      const informer = this.#owned.get(`${apiVersion}/${type}`);
      const inherited = description === undefined ? [] : (informer?.byIndex(DESCRIPTION_INDEX, description) ?? []);
      return [
        ...(informer?.byIndex(OWNER_INDEX, uid) ?? []),
        ...inherited.filter((object) => ownerUidOf(object) !== uid),
      ].filter(({ metadata }) => kind.scope === "Cluster" || metadata.namespace === owner?.metadata.namespace);
    });
  }

  #findOwner(uid: string): { controller: Controller; object: LiveObject; queueKey: string } | undefined {
    for (const controller of this.#controllers.values()) {
      const [object] = controller.informer.byIndex(UID_INDEX, uid);
      if (object === undefined) continue;
      return { controller, object, queueKey: queueKeyOf(controller.kind, objectKey(object.metadata)) };
    }
    return undefined;
  }

  #describeOwner(uid: string): string | undefined {
    const owner = this.#findOwner(uid);
    return owner && `${owner.controller.kind.kind} ${objectKey(owner.object.metadata)}`;
  }

  /** An update takes one of the workers; an object of a kind that shares stacks waits for the update of its stack. */
  #laneOf(queueKey: string): Lane {
    const [{ kind, sharing }, key] = this.#locate(queueKey);
    const group = partitionOfBatch(key) ?? namespaceOf(key);
    return { group: `${kindName(kind)}|${group}`, waits: sharing !== undefined && !isBatch(key) };
  }

  /** A shared stack is always accepted: objects wait for what is done in its name, if only to hear that it is not done. */
  #accepts(queueKey: string): boolean {
    const [controller, key] = this.#locate(queueKey);
    return isBatch(key) || (this.#options.shards?.holds(shareOf(controller, key)) ?? true);
  }

  #locate(queueKey: string): [Controller, string] {
    const [name = "", key = ""] = queueKey.split("|");
    const controller = this.#controllers.get(name);
    if (controller === undefined) throw new TypeError(`no controller for ${queueKey}`);
    return [controller, key];
  }

  #shareOf(queueKey: string): string {
    const [controller, key] = this.#locate(queueKey);
    return shareOf(controller, key);
  }

  #isOurs(controller: Controller, { metadata }: LiveObject): boolean {
    return this.#options.shards?.holds(shareOf(controller, objectKey(metadata))) ?? true;
  }

  #informers(): Informer[] {
    const own = [...this.#controllers.values()].flatMap(({ informer, observers }) => [informer, ...observers]);
    return [...own, ...this.#owned.values()];
  }

  #objects(): number {
    return [...this.#controllers.values()].reduce((sum, { informer }) => sum + informer.list().length, 0);
  }
}

/** The queue's name for an object: its kind and its key. */
function queueKeyOf(kind: AnyKind, key: string): string {
  return `${kindName(kind)}|${key}`;
}

/** What a shared stack is called in the queue, beside the objects of its kind. */
const BATCH = "stack:";

function batchKeyOf(kind: AnyKind, place: string): string {
  return queueKeyOf(kind, `${BATCH}${place}`);
}

function isBatch(key: string): boolean {
  return key.startsWith(BATCH);
}

/** The partition of a shared stack, by what the queue calls it; `undefined` for an object. */
function partitionOfBatch(key: string): string | undefined {
  return isBatch(key) ? partitionOfPlace(key.slice(BATCH.length)) : undefined;
}

/**
 * What goes to one replica as a whole: a stack, or all the shared stacks of a partition, as whoever fills them has to know
 * what is in each. Objects that may claim the same ({@link Claims}) go together, whatever their kinds: whoever came first
 * is known in one process only.
 */
function shareOf({ kind, sharing }: Pick<Controller, "kind" | "sharing">, key: string): string {
  if (kind.claims !== undefined) return "claims";
  if (sharing === undefined) return stackName(kind, key);
  return `${kindName(kind)}|${partitionOfBatch(key) ?? sharing.placement.partitionOf(key)}`;
}

const OBEYED_ANNOTATIONS = [PAUSED_ANNOTATION, RECONCILE_ANNOTATION, DELETION_POLICY_ANNOTATION];

/** Whether an update may follow from a change, besides one of the status. */
function needsReconcile(change: ObjectChange): boolean {
  if (change.type !== "modified") return true;
  const [before, after] = [change.previous.metadata, change.object.metadata];
  const isHeld = ({ finalizers }: typeof before) => finalizers?.includes(FINALIZER) ?? false;
  return (
    before.generation !== after.generation ||
    before.deletionTimestamp !== after.deletionTimestamp ||
    (isHeld(before) && !isHeld(after)) ||
    OBEYED_ANNOTATIONS.some((name) => before.annotations?.[name] !== after.annotations?.[name])
  );
}

function hasOtherStatus({ previous, object }: Extract<ObjectChange, { type: "modified" }>): boolean {
  return !isDeepStrictEqual(previous.status, object.status);
}

function isSettled(object: LiveObject): boolean {
  const { generation, deletionTimestamp } = object.metadata;
  const ready = findCondition(statusOf(object).conditions, "Ready");
  return ready?.status === "True" && ready.observedGeneration === generation && !deletionTimestamp;
}

/** Nobody reads a custom resource's managed fields, and they are the larger part of a small object. */
function withoutManagedFields(object: LiveObject): LiveObject {
  const { managedFields: _, ...metadata } = object.metadata;
  return { ...object, metadata };
}

/** Of owned objects Kindstack's own entry is kept: drift shows in it. */
function withOwnManagedFields(object: LiveObject): LiveObject {
  const managedFields = object.metadata.managedFields?.filter(({ manager }) => manager === FIELD_MANAGER) ?? [];
  return { ...object, metadata: { ...object.metadata, managedFields } };
}
