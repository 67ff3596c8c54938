import { type AnyKind, kindName } from "../../stacks/contract/kind";
import { outcomeOf } from "../controller/conditions";
import type { RunMetrics } from "../controller/context";
import type { Metrics } from "../telemetry/metrics";

/** Counts what updates of a kind's stacks do. */
export function countRuns(kind: AnyKind, metrics: Metrics): RunMetrics {
  const name = kindName(kind);
  const updated: RunMetrics["updated"] = ({ operation, outcome, failures, durationMs }) => {
    const waits = outcomeOf(failures) === "pending";
    const labels = { kind: name, operation, result: waits ? "waiting" : outcome };
    metrics.updates.inc(labels);
    metrics.updateDuration.observe(labels, durationMs / 1000);
  };
  return {
    updated,
    ran(result, cause) {
      if (!result.isPartial) updated(result);
      for (const [operation, count] of Object.entries(result.changes)) {
        metrics.resourceOperations.inc({ kind: name, operation }, count);
      }
      if (cause === "Repairing") metrics.driftRepairs.inc({ kind: name });
    },
  };
}
