import { type AnyKind, kindName } from "../../stacks/contract/kind";
import type { UpdateResult } from "../automation/engine";
import type { Cause } from "../controller/conditions";
import type { Metrics } from "../telemetry/metrics";

/** Counts what updates of a kind's stacks do. */
export class RunMetrics {
  readonly #kind: string;
  readonly #metrics: Metrics;

  constructor(kind: AnyKind, metrics: Metrics) {
    this.#kind = kindName(kind);
    this.#metrics = metrics;
  }

  /** An update has ended; one of several objects counts once. */
  updated({ operation, outcome, failures, durationMs }: UpdateResult): void {
    const waits = failures.length > 0 && failures.every(({ errorClass }) => errorClass === "pending");
    const labels = { kind: this.#kind, operation, result: waits ? "waiting" : outcome };
    this.#metrics.updates.inc(labels);
    this.#metrics.updateDuration.observe(labels, durationMs / 1000);
  }

  /** What an update came to for one object. */
  ran(result: UpdateResult, cause: Cause | "Deleting"): void {
    if (!result.isPartial) this.updated(result);
    for (const [operation, count] of Object.entries(result.changes)) {
      this.#metrics.resourceOperations.inc({ kind: this.#kind, operation }, count);
    }
    if (cause === "Repairing") this.#metrics.driftRepairs.inc({ kind: this.#kind });
  }
}
