import { Counter, collectDefaultMetrics, exponentialBuckets, Gauge, Histogram, Registry } from "prom-client";
import type { InformerObserver } from "../cache/informer";
import type { RolloutCounts } from "../controller/rollout";
import type { WorkQueueObserver } from "../queue/work-queue";
import { ObjectMetrics } from "./object-metrics";

/** What the operator counts. Names are those that controllers and their dashboards have in common, where there are any. */
export interface Metrics {
  registry: Registry;

  /** `result`: success, error, requeue or requeue_after. */
  reconcileTotal: Counter<"controller" | "result">;
  reconcileErrors: Counter<"controller">;
  /** Seconds. */
  reconcileTime: Histogram<"controller">;
  activeWorkers: Gauge<"controller">;
  maxConcurrentReconciles: Gauge<"controller">;

  /** Seconds from the start of the engine to its end. */
  updateDuration: Histogram<"kind" | "operation" | "result">;
  updates: Counter<"kind" | "operation" | "result">;
  /** Resources that updates created, updated, replaced and deleted. */
  resourceOperations: Counter<"kind" | "operation">;
  driftRepairs: Counter<"kind">;

  /** Custom resources by what their conditions say. */
  objects: ObjectMetrics;

  /** Follows the rollout of a new version of a kind's program; `counts` is asked at every scrape. */
  rollout(kind: string, counts: () => RolloutCounts): void;

  /** Shards that are this replica's to work on. */
  shardsHeld: Gauge;
  /** `transition`: acquired, released or lost. */
  shardTransitions: Counter<"transition">;

  /** The observer to give to the work queue of that name. */
  workQueue(name: string): WorkQueueObserver;
  /** The observer to give to an informer; `lastContact` (by `performance.now()`) is asked at every scrape. */
  informer(resource: string, lastContact: () => number): InformerObserver;
}

const RECONCILE_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 20, 30, 60, 120, 300];
const UPDATE_SECONDS = [0.25, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 20, 30, 60, 120, 300, 600];
/** From 1 ms to about 10 minutes. */
const QUEUE_SECONDS = exponentialBuckets(0.001, 3, 13);

/** Metrics in a registry of their own, together with those of the process. */
export function createMetrics(): Metrics {
  const registry = new Registry();
  const registers = [registry];
  // Its own precision, 10 ms, wakes the process a hundred times a second: more than all else that it does at rest.
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 100 });

  const depth = new Gauge({ name: "workqueue_depth", help: "Keys in the queue.", labelNames: ["name"], registers });
  const adds = new Counter({
    name: "workqueue_adds_total",
    help: "Keys added to the queue.",
    labelNames: ["name"],
    registers,
  });
  const retries = new Counter({
    name: "workqueue_retries_total",
    help: "Keys that were added again after a failure.",
    labelNames: ["name"],
    registers,
  });
  const queueDuration = new Histogram({
    name: "workqueue_queue_duration_seconds",
    help: "Time that keys waited in the queue.",
    labelNames: ["name"],
    buckets: QUEUE_SECONDS,
    registers,
  });
  const workDuration = new Histogram({
    name: "workqueue_work_duration_seconds",
    help: "Time that keys were processed.",
    labelNames: ["name"],
    buckets: QUEUE_SECONDS,
    registers,
  });

  const lastContacts = new Map<string, () => number>();
  new Gauge({
    name: "kindstack_informer_last_contact_seconds",
    help: "Time since the last contact with the API server in the list or watch of a resource.",
    labelNames: ["resource"],
    registers,
    collect() {
      const now = performance.now();
      for (const [resource, lastContact] of lastContacts) this.set({ resource }, (now - lastContact()) / 1000);
    },
  });
  const relists = new Counter({
    name: "kindstack_informer_relists_total",
    help: "How often all objects of a resource were listed again.",
    labelNames: ["resource"],
    registers,
  });

  const rollouts = new Map<string, () => RolloutCounts>();
  new Gauge({
    name: "kindstack_rollout_objects",
    help: "Objects that this replica brings to a new version of their kind's program: waiting, updating or failed.",
    labelNames: ["kind", "state"],
    registers,
    collect() {
      for (const [kind, counts] of rollouts) {
        const { stopped: _, ...states } = counts();
        for (const [state, objects] of Object.entries(states)) this.set({ kind, state }, objects);
      }
    },
  });
  new Gauge({
    name: "kindstack_rollout_stopped",
    help: "1 while a rollout begins no more objects since too many have failed.",
    labelNames: ["kind"],
    registers,
    collect() {
      for (const [kind, counts] of rollouts) this.set({ kind }, counts().stopped ? 1 : 0);
    },
  });

  return {
    registry,
    reconcileTotal: new Counter({
      name: "controller_runtime_reconcile_total",
      help: "Reconciliations by result.",
      labelNames: ["controller", "result"],
      registers,
    }),
    reconcileErrors: new Counter({
      name: "controller_runtime_reconcile_errors_total",
      help: "Reconciliations that failed.",
      labelNames: ["controller"],
      registers,
    }),
    reconcileTime: new Histogram({
      name: "controller_runtime_reconcile_time_seconds",
      help: "How long reconciliations took.",
      labelNames: ["controller"],
      buckets: RECONCILE_SECONDS,
      registers,
    }),
    activeWorkers: new Gauge({
      name: "controller_runtime_active_workers",
      help: "Workers that are reconciling.",
      labelNames: ["controller"],
      registers,
    }),
    maxConcurrentReconciles: new Gauge({
      name: "controller_runtime_max_concurrent_reconciles",
      help: "How many workers may reconcile at once.",
      labelNames: ["controller"],
      registers,
    }),
    updateDuration: new Histogram({
      name: "kindstack_update_duration_seconds",
      help: "How long updates of stacks took.",
      labelNames: ["kind", "operation", "result"],
      buckets: UPDATE_SECONDS,
      registers,
    }),
    updates: new Counter({
      name: "kindstack_updates_total",
      help: "Updates of stacks.",
      labelNames: ["kind", "operation", "result"],
      registers,
    }),
    resourceOperations: new Counter({
      name: "kindstack_resource_operations_total",
      help: "Resources that updates changed, by what was done to them.",
      labelNames: ["kind", "operation"],
      registers,
    }),
    driftRepairs: new Counter({
      name: "kindstack_drift_repairs_total",
      help: "Updates that corrected drift.",
      labelNames: ["kind"],
      registers,
    }),

    objects: new ObjectMetrics(registry),

    shardsHeld: new Gauge({
      name: "kindstack_shards_held",
      help: "Shards that this replica holds; with one shard, 1 on the leader.",
      registers,
    }),
    shardTransitions: new Counter({
      name: "kindstack_shard_transitions_total",
      help: "How often this replica acquired or released a shard, or lost all that it had.",
      labelNames: ["transition"],
      registers,
    }),

    rollout: (kind, counts) => void rollouts.set(kind, counts),
    workQueue: (name) => ({
      added: () => adds.inc({ name }),
      retried: () => retries.inc({ name }),
      depthChanged: (keys) => depth.set({ name }, keys),
      started: (waitedSeconds) => queueDuration.observe({ name }, waitedSeconds),
      finished: (workedSeconds) => workDuration.observe({ name }, workedSeconds),
    }),
    informer: (resource, lastContact) => {
      lastContacts.set(resource, lastContact);
      return { relisted: () => relists.inc({ resource }) };
    },
  };
}
