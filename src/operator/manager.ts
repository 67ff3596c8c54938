import { setMaxListeners } from "node:events";
import { isApiError, type LiveObject, type ObjectType } from "../../providers/kubernetes/client";
import { clusterOf } from "../../providers/kubernetes/cluster";
import { type AnyKind, kindName, kindType } from "../../stacks/contract/kind";
import { kindOf } from "../../stacks/contract/kind-name";
import type { Mode } from "../../stacks/contract/mode";
import { objectKey } from "../../stacks/contract/object";
import type { Plan, PlanSpec } from "../../stacks/contract/plan";
import type { BackendOwnership } from "../backend/ownership";
import { InformerFactory, pollUnserved } from "../cache/informer-factory";
import { Claims } from "../controller/claims";
import type { Controller, ControllerEnvironment } from "../controller/controller";
import type { CachedView } from "../controller/kind-cache";
import { watchModes } from "../controller/modes";
import { type ObjectItem, objectItem } from "../controller/object-item";
import { openController } from "../controller/open-controller";
import { OwnerIndex } from "../controller/owner-index";
import { PlanStore, type PlanStoreOptions } from "../controller/plan-store";
import { WorkQueue } from "../queue/work-queue";
import type { Shards } from "../sharding/shards";
import { pollDrift } from "./drift-poller";
import { DestroyedStacks, surveyStacks } from "./stack-survey";

export interface ManagerOptions
  extends Pick<ControllerEnvironment, "client" | "engine" | "recorder" | "metrics" | "logger" | "rollout">,
    Pick<PlanStoreOptions, "namespace" | "planKey" | "authorMayNotApprove"> {
  kinds: readonly AnyKind[];
  /** Whether the state's backend is this operator's. */
  backend: Pick<BackendOwnership, "refusal" | "problem" | "run">;
  /** The mode of a kind, where the operator is told one. */
  configuredMode?: ((kind: AnyKind) => Mode | undefined) | undefined;
  /** The shards of this replica; without them, the replica works on all objects. */
  shards?: Shards | undefined;
  /** How many objects are worked on, and updates run, at the same time. */
  concurrency: number;
  /** How often kinds are asked for drift that no watch shows. */
  driftIntervalMs: number;
  /** The full re-list interval, of the API server's objects and of the backend's stacks. */
  relistIntervalMs: number;
  /** How long running updates may continue after the stop before they are interrupted. */
  gracePeriodMs: number;
}

/**
 * The operator: informers fill caches and put objects in the queue, workers take objects and reconcile them.
 *
 * ```
 *   custom resources ─┐
 *   owned objects ────┼→ queue of objects → reconcile → engine (up, destroy) → status
 *   drift polls ──────┤                                  ⇅ pipe
 *   plans, modes ─────┘                               ProviderSession → providers
 * ```
 */
export class Manager {
  readonly #options: ManagerOptions;
  /** By the kind's name. */
  readonly #controllers = new Map<string, Controller>();
  /** The kinds whose type or watched types the API server does not serve. */
  readonly #unopened = new Set<AnyKind>();
  readonly #queue: WorkQueue<ObjectItem>;
  readonly #claims: Claims;
  readonly #informers: InformerFactory;
  readonly #owners: OwnerIndex;
  /** What controllers share, and what ends them, while the operator runs. */
  #running: { environment: ControllerEnvironment; signal: AbortSignal } | undefined;
  #stopping = false;

  constructor(options: ManagerOptions) {
    this.#options = options;
    const { client, logger, metrics, relistIntervalMs } = options;
    this.#queue = new WorkQueue({
      logger,
      observer: metrics.workQueue(),
      groupOf: ({ kind }) => kindName(kind),
      fairnessKeyOf: ({ namespace }) => namespace,
      accepts: ({ kind, key }) => this.#controllerOf(kind)?.holds(key) ?? false,
    });
    this.#claims = new Claims(
      (item) => this.#controllerOf(item.kind)?.reconsider(item),
      (uid) => this.#owners.get(uid) !== undefined,
    );
    this.#informers = new InformerFactory({ client, logger, relistIntervalMs, metrics });
    this.#owners = new OwnerIndex(this.#informers, this.#queue, this.#claims);
  }

  /** Why the operator does not work yet, or any more; `undefined` when it does, or would if something were its own. */
  get notReady(): string | undefined {
    if (this.#stopping) return "stopping";
    if (this.#controllers.size === 0 || !this.#informers.hasSynced) return "caches are being filled";
    return this.#informers.isBlind ? "the API server does not list the objects of a type" : undefined;
  }

  get isBusy(): boolean {
    return this.#queue.running > 0 || this.#queue.depth > 0;
  }

  objects(kind: AnyKind): LiveObject[] {
    return this.#controllerOf(kind)?.list() ?? [];
  }

  object(kind: AnyKind, key: string): LiveObject | undefined {
    return this.#controllerOf(kind)?.get(key);
  }

  /** What waits for an approval, or is applied, of an object. */
  plan(kind: AnyKind, object: LiveObject): Plan | undefined {
    return this.#running?.environment.plans?.get(kind, object);
  }

  /** What the caches show of an owned object, by its id; `undefined` when its type is not watched. */
  view(id: string): CachedView | undefined {
    return this.#owners.view(id);
  }

  /** Works until `signal` is aborted, then lets running updates finish for the grace period and interrupts the rest. */
  async run(signal: AbortSignal, onReady?: () => Promise<void>): Promise<void> {
    const { client, engine, logger, kinds, backend, concurrency, gracePeriodMs, driftIntervalMs, recorder, shards } =
      this.#options;
    const { relistIntervalMs } = this.#options;
    const interrupt = new AbortController();
    setMaxListeners(0, interrupt.signal); // each piece of work listens to it
    const controllers = () => [...this.#controllers.values()];
    const onChange = (object: PlanSpec["object"], isDecided: boolean) => {
      const served = controllers().map(({ kind }) => kind);
      const kind = kindOf(served, object);
      if (kind !== undefined) this.#queue.add(objectItem(kind, object), isDecided ? "decision" : "any");
    };
    const plans = await PlanStore.open({ ...this.#options, informers: this.#informers, onChange });
    if (plans !== undefined) this.#options.metrics.plans(() => plans.list());
    const destroyed = new DestroyedStacks(engine, logger);
    const environment = {
      ...this.#options,
      forgetDestroyed: (stack: string) => destroyed.add(stack),
      plans,
      cluster: await clusterOf(client),
      readSettings: await watchModes(client, this.#informers, this.#options.configuredMode, (changed) =>
        this.#requeue(({ namespace }) => namespace === changed),
      ),
      informers: this.#informers,
      owners: this.#owners,
      queue: this.#queue,
      claims: this.#claims,
    };
    for (const kind of kinds) await this.#open(kind, environment);
    const informers = this.#informers.start(signal);
    await informers.synced;
    const objects = controllers().reduce((sum, controller) => sum + controller.list().length, 0);
    logger.info({ kinds: kinds.map(kindName), objects }, "caches are filled");
    this.#running = { environment, signal };
    await onReady?.();

    const polling = Promise.all([
      backend.run(signal, {
        refusal: () => this.#requeue(() => true),
        replaced: () => {
          for (const controller of controllers()) controller.restored();
        },
      }),
      plans?.sweep(signal),
      pollDrift(controllers, driftIntervalMs, logger, signal),
      surveyStacks(controllers, engine, backend, relistIntervalMs, logger, signal),
      pollUnserved(client, this.#lacking, (kind) => this.serve(kind), signal),
    ]);
    const onStop = () => {
      this.#stopping = true;
      logger.info({ running: this.#queue.running }, "stopping");
      setTimeout(() => interrupt.abort(), gracePeriodMs).unref();
      shards?.leave();
    };
    const sharding = shards?.run({
      acquired: (includes) => {
        for (const controller of controllers()) controller.shardsAcquired(includes);
      },
      released: (includes) => {
        for (const controller of controllers()) controller.shardsReleased(includes);
      },
    });
    if (signal.aborted) onStop();
    signal.addEventListener("abort", onStop, { once: true });
    const work = async (item: ObjectItem) => this.#controllerOf(item.kind)?.reconcile(item, interrupt.signal);
    await this.#queue.run(concurrency, work, signal);
    await Promise.all([informers.ended, sharding, polling]);
    await destroyed.ended();
    await recorder.flush();
  }

  /**
   * Serves a kind whose CRD is installed, in place of a kind of the same name, from now on. All objects of the kind
   * are reconciled; objects whose last update ran the same program need no update.
   *
   * @throws ApiError, with nothing changed, when a type that the kind watches is not installed in the cluster
   */
  async serve(kind: AnyKind): Promise<void> {
    if (this.#running === undefined) throw new TypeError("the operator does not run");
    const { environment, signal } = this.#running;
    const controller = await openController(kind, environment);
    await this.#informers.start(signal).synced; // what a cache does not show yet would be taken for missing
    this.#unopened.delete(kind);
    const previous = this.withdraw(kindName(kind));
    this.#add(controller);
    for (const { metadata } of controller.list()) this.#queue.add(objectItem(kind, metadata));
    for (const { metadata } of previous?.list() ?? []) {
      if (controller.get(objectKey(metadata))?.metadata.uid === metadata.uid) continue;
      this.#owners.drop(metadata.uid); // deleted, which its informer has not seen any more
      this.#claims.drop(metadata.uid, objectItem(kind, metadata));
    }
  }

  /** Serves the kind of this name no more; its objects, their resources and the CRD stay. @returns its controller */
  withdraw(name: string): Controller | undefined {
    const controller = this.#controllers.get(name);
    this.#controllers.delete(name); // what is queued is dropped
    controller?.stop();
    return controller;
  }

  /** Serves a kind, or notes that what it watches is not served. */
  async #open(kind: AnyKind, environment: ControllerEnvironment): Promise<void> {
    try {
      this.#add(await openController(kind, environment));
    } catch (error) {
      if (!isApiError(error, 404, 503)) throw error;
      const { logger } = this.#options;
      logger.error({ kind: kindName(kind), reason: error.message }, "kind is not served");
      this.#unopened.add(kind);
    }
  }

  /** The kinds that lack types, with these types. */
  readonly #lacking = (): (readonly [AnyKind, readonly ObjectType[]])[] => {
    const needed = (kind: AnyKind) => [kindType(kind), ...(kind.capabilities.watches ?? [])];
    return [
      ...[...this.#unopened].map((kind) => [kind, needed(kind)] as const),
      ...[...this.#controllers.values()].map(({ kind, unserved }) => [kind, unserved] as const),
    ];
  };

  /** What has changed takes effect at once for these objects. */
  #requeue(includes: (metadata: LiveObject["metadata"]) => boolean): void {
    for (const controller of this.#controllers.values()) {
      for (const { metadata } of controller.list()) {
        if (includes(metadata)) this.#queue.add(objectItem(controller.kind, metadata));
      }
    }
  }

  #add(controller: Controller): void {
    const { metrics, concurrency } = this.#options;
    const name = kindName(controller.kind);
    this.#controllers.set(name, controller);
    metrics.maxConcurrentReconciles.set({ controller: name }, concurrency);
  }

  #controllerOf(kind: AnyKind): Controller | undefined {
    return this.#controllers.get(kindName(kind));
  }
}
