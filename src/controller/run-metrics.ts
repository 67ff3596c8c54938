import { type AnyKind, kindName } from "../../stacks/contract/kind";
import type { Metrics } from "../telemetry/metrics";
import { outcomeOf } from "./conditions";
import type { RunMetrics } from "./context";

/** Counts what updates of a kind's stacks do. */
export function countRuns(kind: AnyKind, metrics: Metrics): RunMetrics {
  const name = kindName(kind);
  return {
    loosened: () => metrics.modesLoosened.inc({ kind: name }),
    ran({ summary, interrupted, failures }, cause) {
      const { startTime, endTime, resourceChanges } = summary;
      const waits = outcomeOf(failures) === "pending";
      const result = waits ? "waiting" : interrupted ? "interrupted" : summary.result;
      const labels = { kind: name, operation: summary.kind === "update" ? "up" : summary.kind, result };
      metrics.updates.inc(labels);
      metrics.updateDuration.observe(labels, (endTime.getTime() - startTime.getTime()) / 1000);
      for (const [change, count] of Object.entries(resourceChanges)) {
        metrics.resourceOperations.inc({ kind: name, operation: change }, count);
      }
      if (cause === "Repairing") metrics.driftRepairs.inc({ kind: name });
    },
  };
}
