import { type AnyKind, kindName } from "../../stacks/contract/kind";
import { outcomeOf } from "../controller/conditions";
import type { RunMetrics } from "../controller/context";
import type { Metrics } from "../telemetry/metrics";

/** Counts what updates of a kind's stacks do. */
export function countRuns(kind: AnyKind, metrics: Metrics): RunMetrics {
  const name = kindName(kind);
  return {
    ran({ operation, outcome, changes, failures, durationMs }, cause) {
      const waits = outcomeOf(failures) === "pending";
      const labels = { kind: name, operation, result: waits ? "waiting" : outcome };
      metrics.updates.inc(labels);
      metrics.updateDuration.observe(labels, durationMs / 1000);
      for (const [change, count] of Object.entries(changes)) {
        metrics.resourceOperations.inc({ kind: name, operation: change }, count);
      }
      if (cause === "Repairing") metrics.driftRepairs.inc({ kind: name });
    },
  };
}
