import { type Counter, exponentialBuckets, type Gauge, type Histogram, type Registry } from "prom-client";
import type { InformerObserver } from "../cache/informer";
import type { RolloutCounts } from "../controller/rollout";
import type { WorkQueueObserver } from "../queue/work-queue";
import { createInstruments, observeLastContact } from "./instruments";
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
const UPDATE_LABELS = ["kind", "operation", "result"] as const;
/** From 1 ms to about 10 minutes. */
const QUEUE_SECONDS = exponentialBuckets(0.001, 3, 13);

/** Metrics in a registry of their own, together with those of the process. */
export function createMetrics(): Metrics {
  const { registry, counter, gauge, observed, histogram } = createInstruments();
  const depth = gauge("workqueue_depth", "Keys in the queue.", "name");
  const adds = counter("workqueue_adds_total", "Keys added to the queue.", "name");
  const retries = counter("workqueue_retries_total", "Keys that were added again after a failure.", "name");
  const queueDuration = histogram(
    "workqueue_queue_duration_seconds",
    "Time that keys waited in the queue.",
    QUEUE_SECONDS,
    "name",
  );
  const workDuration = histogram(
    "workqueue_work_duration_seconds",
    "Time that keys were processed.",
    QUEUE_SECONDS,
    "name",
  );

  const lastContacts = new Map<string, () => number>();
  observeLastContact(observed, lastContacts);
  const relists = counter(
    "kindstack_informer_relists_total",
    "How often all objects of a resource were listed again.",
    "resource",
  );

  const rollouts = new Map<string, () => RolloutCounts>();
  observed(
    "kindstack_rollout_objects",
    "Objects that this replica brings to a new version of their kind's program: waiting, updating or failed.",
    ["kind", "state"],
    (gauge) => {
      for (const [kind, counts] of rollouts) {
        const { stopped: _, ...states } = counts();
        for (const [state, objects] of Object.entries(states)) gauge.set({ kind, state }, objects);
      }
    },
  );
  observed(
    "kindstack_rollout_stopped",
    "1 while a rollout begins no more objects since too many have failed.",
    ["kind"],
    (gauge) => {
      for (const [kind, counts] of rollouts) gauge.set({ kind }, counts().stopped ? 1 : 0);
    },
  );

  return {
    registry,
    reconcileTotal: counter("controller_runtime_reconcile_total", "Reconciliations by result.", "controller", "result"),
    reconcileErrors: counter("controller_runtime_reconcile_errors_total", "Reconciliations that failed.", "controller"),
    reconcileTime: histogram(
      "controller_runtime_reconcile_time_seconds",
      "How long reconciliations took.",
      RECONCILE_SECONDS,
      "controller",
    ),
    activeWorkers: gauge("controller_runtime_active_workers", "Workers that are reconciling.", "controller"),
    maxConcurrentReconciles: gauge(
      "controller_runtime_max_concurrent_reconciles",
      "How many workers may reconcile at once.",
      "controller",
    ),
    updateDuration: histogram(
      "kindstack_update_duration_seconds",
      "How long updates of stacks took.",
      UPDATE_SECONDS,
      ...UPDATE_LABELS,
    ),
    updates: counter("kindstack_updates_total", "Updates of stacks.", ...UPDATE_LABELS),
    resourceOperations: counter(
      "kindstack_resource_operations_total",
      "Resources that updates changed, by what was done to them.",
      "kind",
      "operation",
    ),
    driftRepairs: counter("kindstack_drift_repairs_total", "Updates that corrected drift.", "kind"),
    objects: new ObjectMetrics(gauge),
    shardsHeld: gauge("kindstack_shards_held", "Shards that this replica holds; with one shard, 1 on the leader."),
    shardTransitions: counter(
      "kindstack_shard_transitions_total",
      "How often this replica acquired or released a shard, or lost all that it had.",
      "transition",
    ),

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
