import type { Gauge } from "prom-client";
import type { LiveObject } from "../../providers/kubernetes/client";
import { readinessOf } from "../../stacks/contract/readiness";
import type { ObjectChange } from "../cache/informer";
import type { Instruments } from "./instruments";

/**
 * Counts the objects in the operator's caches by what their conditions say. Each change of a cache moves one object from
 * one count to another: neither a scrape nor an event looks at all objects.
 */
export class ObjectMetrics {
  readonly #objects: Gauge<"kind" | "ready" | "reason">;
  readonly #states: Gauge<"kind" | "state">;

  constructor(gauge: Instruments["gauge"]) {
    this.#objects = gauge(
      "kindstack_objects",
      "Custom resources by status and reason of their Ready condition. Every replica counts all objects.",
      ...(["kind", "ready", "reason"] as const),
    );
    this.#states = gauge(
      "kindstack_object_states",
      "Custom resources that are Reconciling, Stalled, FieldConflict, Paused or Deleting. Every replica counts all.",
      ...(["kind", "state"] as const),
    );
  }

  /** Takes in a change of the cache of a kind's objects. */
  changed(kind: string, change: ObjectChange): void {
    if (change.type !== "added") this.#add(kind, change.previous, -1);
    if (change.type !== "deleted") this.#add(kind, change.object, 1);
  }

  #add(kind: string, object: LiveObject, count: 1 | -1): void {
    const { ready, reason, states } = readinessOf(object);
    this.#objects.inc({ kind, ready, reason }, count);
    for (const state of states) this.#states.inc({ kind, state }, count);
  }
}
