import { Counter, exponentialBuckets, Gauge, type Registry } from "prom-client";
import type { LiveObject } from "../../providers/kubernetes/client";
import { PLAN_STATES, type Plan } from "../../stacks/contract/plan";
import { READINESS_STATES, readinessOf } from "../../stacks/contract/readiness";
import type { EngineProcesses } from "../automation/engine-processes";
import { BACKEND_REASONS } from "../backend/ownership";
import type { ObjectChange } from "../cache/change";
import type { InformerObserver } from "../cache/informer";
import type { WorkQueueObserver } from "../queue/work-queue";
import { createInstruments } from "./instruments";

/** How far the rollout of a new version of a kind's program is. */
export interface RolloutCounts {
  /** Objects that have the former version and wait. */
  waiting: number;
  /** Objects of the present wave that are not done. */
  updating: number;
  /** Objects whose update to this version failed, and has not succeeded since. */
  failed: number;
  stopped: boolean;
}

export type Metrics = ReturnType<typeof createMetrics>;

const RECONCILE_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 20, 30, 60, 120, 300];
const UPDATE_SECONDS = [0.25, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 20, 30, 60, 120, 300, 600];
/** From 1 ms to about 10 minutes. */
const QUEUE_SECONDS = exponentialBuckets(0.001, 3, 13);

/**
 * What the operator counts, in a registry of its own, together with the metrics of the process. Names are those that
 * controllers and their dashboards have in common, where there are any.
 */
export function createMetrics() {
  const { registry, counter, gauge, histogram, observed, informer } = createInstruments();
  const depth = gauge("workqueue_depth", ["name"], "Keys in the queue.");
  const adds = counter("workqueue_adds_total", ["name"], "Keys added to the queue.");
  const retries = counter("workqueue_retries_total", ["name"], "Keys that were added again after a failure.");
  const queueDuration = histogram(
    "workqueue_queue_duration_seconds",
    ["name"],
    "Time that keys waited in the queue.",
    QUEUE_SECONDS,
  );
  const workDuration = histogram(
    "workqueue_work_duration_seconds",
    ["name"],
    "Time that keys were processed.",
    QUEUE_SECONDS,
  );
  const relists = counter(
    "kindstack_informer_relists_total",
    ["resource"],
    "How often all objects of a resource were listed again.",
  );

  const rollouts = new Map<string, () => RolloutCounts>();
  observed(
    "kindstack_rollout_objects",
    ["kind", "state"],
    "Objects that this replica brings to a new version of their kind's program: waiting, updating or failed.",
    (gauge) => {
      for (const [kind, counts] of rollouts) {
        const { stopped: _, ...states } = counts();
        for (const [state, objects] of Object.entries(states)) gauge.set({ kind, state }, objects);
      }
    },
  );
  observed(
    "kindstack_rollout_stopped",
    ["kind"],
    "1 while a rollout begins no more objects since too many have failed.",
    (gauge) => {
      for (const [kind, counts] of rollouts) gauge.set({ kind }, counts().stopped ? 1 : 0);
    },
  );

  let refusedAs: () => string | undefined = () => undefined;
  observed(
    "kindstack_backend_refused",
    ["reason"],
    "1 while this replica updates and deletes nothing, as the state's backend is not, or may not be, its own.",
    (gauge) => {
      for (const reason of BACKEND_REASONS) gauge.set({ reason }, refusedAs() === reason ? 1 : 0);
    },
  );

  let plans: () => readonly Plan[] = () => [];
  observed("kindstack_plans", ["state"], "Plans by their state. Every replica counts all.", (gauge) => {
    for (const state of PLAN_STATES)
      gauge.set({ state }, plans().filter(({ status }) => status.state === state).length);
  });
  observed("kindstack_plan_age_seconds", ["state"], "Age of the oldest plan in a state; 0 without one.", (gauge) => {
    for (const state of PLAN_STATES) {
      const times = plans().flatMap(({ spec, status }) => (status.state === state ? [Date.parse(spec.cause.at)] : []));
      gauge.set({ state }, Math.max(0, Date.now() - Math.min(Date.now(), ...times)) / 1000);
    }
  });

  const objects = gauge(
    "kindstack_objects",
    ["kind", "synced", "ready", "reason"],
    "Custom resources by the status of their conditions Synced and Ready, and the reason of Ready. Every replica counts all objects.",
  );
  const objectStates = gauge(
    "kindstack_object_states",
    ["kind", "state"],
    `Custom resources by what holds of them: ${READINESS_STATES.join(", ")}. Every replica counts all.`,
  );
  const countObject = (kind: string, object: LiveObject, count: 1 | -1) => {
    const { synced, ready, reason, states } = readinessOf(object);
    objects.inc({ kind, synced, ready, reason }, count);
    for (const state of states) objectStates.inc({ kind, state }, count);
  };

  return {
    registry,
    /** `result`: success, error, requeue or requeue_after. */
    reconcileTotal: counter(
      "controller_runtime_reconcile_total",
      ["controller", "result"],
      "Reconciliations by result.",
    ),
    reconcileErrors: counter(
      "controller_runtime_reconcile_errors_total",
      ["controller"],
      "Reconciliations that failed.",
    ),
    reconcileTime: histogram(
      "controller_runtime_reconcile_time_seconds",
      ["controller"],
      "How long reconciliations took.",
      RECONCILE_SECONDS,
    ),
    activeWorkers: gauge("controller_runtime_active_workers", ["controller"], "Workers that are reconciling."),
    maxConcurrentReconciles: gauge(
      "controller_runtime_max_concurrent_reconciles",
      ["controller"],
      "How many workers may reconcile at once.",
    ),
    /** From the start of the engine to its end. */
    updateDuration: histogram(
      "kindstack_update_duration_seconds",
      ["kind", "operation", "result"],
      "How long updates of stacks took.",
      UPDATE_SECONDS,
    ),
    updates: counter("kindstack_updates_total", ["kind", "operation", "result"], "Updates of stacks."),
    resourceOperations: counter(
      "kindstack_resource_operations_total",
      ["kind", "operation"],
      "Resources that updates changed, by what was done to them.",
    ),
    driftRepairs: counter("kindstack_drift_repairs_total", ["kind"], "Updates that corrected drift."),
    /** A time and no count: a count is 1 from its first sample on after a restart, and so never rises. */
    modeLoosened: gauge(
      "kindstack_mode_loosened_timestamp_seconds",
      ["kind"],
      "When this replica last found an object for which a less strict mode holds than before.",
    ),
    shards: gauge("kindstack_shards", [], "Shards that the installation has."),
    shardsHeld: gauge("kindstack_shards_held", [], "Shards that this replica holds; with one shard, 1 on the leader."),
    /** `transition`: acquired, released or lost. */
    shardTransitions: counter(
      "kindstack_shard_transitions_total",
      ["transition"],
      "How often this replica acquired or released a shard, or lost all that it had.",
    ),

    /** Takes in a change of the cache of a kind's objects: neither a scrape nor an event looks at all objects. */
    objectChanged(kind: string, change: ObjectChange): void {
      if (change.type !== "added") countObject(kind, change.previous, -1);
      if (change.type !== "deleted") countObject(kind, change.object, 1);
    },
    /** Follows the rollout of a new version of a kind's program; `counts` is asked at every scrape. */
    rollout: (kind: string, counts: () => RolloutCounts) => void rollouts.set(kind, counts),
    /** Why the state's backend is refused, if it is; asked at every scrape. */
    backendRefused: (reason: () => string | undefined) => {
      refusedAs = reason;
    },
    /** All plans; asked at every scrape. */
    plans: (list: () => readonly Plan[]) => {
      plans = list;
    },
    workQueue(): WorkQueueObserver {
      const name = "kindstack";
      queueDuration.zero({ name });
      return {
        added: () => adds.inc({ name }),
        retried: () => retries.inc({ name }),
        depthChanged: (keys) => depth.set({ name }, keys),
        started: (waitedSeconds) => queueDuration.observe({ name }, waitedSeconds),
        finished: (workedSeconds) => workDuration.observe({ name }, workedSeconds),
      };
    },
    /** The observer to give to an informer; `lastContact` (by `performance.now()`) is asked at every scrape. */
    informer(resource: string, lastContact: () => number): InformerObserver {
      informer(resource, lastContact);
      return { relisted: () => relists.inc({ resource }) };
    },
  };
}

/** What the engine has done and has in use, asked at every scrape. */
export function addEngineMetrics(registry: Registry, source: Pick<EngineProcesses, "counts" | "usage">): void {
  const registers = [registry];
  const counted = (name: string, count: "operations" | "successors" | "crashes", help: string) =>
    new Counter({
      name,
      help,
      registers,
      collect() {
        this.reset();
        this.inc(source.counts[count]);
      },
    });
  // Each asks for itself, as metrics do not wait for each other at a scrape; they get one answer.
  const used = (name: string, what: "memoryBytes" | "descriptors", help: string) =>
    new Gauge({
      name,
      help,
      registers,
      async collect() {
        this.set((await source.usage())[what]);
      },
    });
  counted("kindstack_engine_operations_total", "operations", "Operations that Pulumi's engine has begun.");
  counted(
    "kindstack_engine_successors_total",
    "successors",
    "Engine processes that took over from one that had done its share.",
  );
  counted("kindstack_engine_crashes_total", "crashes", "Engine processes that ended unexpectedly.");
  new Counter({
    name: "kindstack_engine_phase_seconds_total",
    help: "Time that operations took in the engine, by phase: lock, load, run, save.",
    labelNames: ["phase"],
    registers,
    collect() {
      this.reset();
      for (const [phase, seconds] of Object.entries(source.counts.phaseSeconds)) this.inc({ phase }, seconds);
    },
  });
  used("kindstack_engine_descriptors", "descriptors", "File descriptors of the engine's processes.");
  used("kindstack_engine_memory_bytes", "memoryBytes", "Resident memory of the engine's processes.");
}
