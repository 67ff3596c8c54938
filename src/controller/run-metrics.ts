import { type AnyKind, kindName } from "../../stacks/contract/kind";
import type { UpResult } from "../automation/engine";
import type { Metrics } from "../telemetry/metrics";
import type { Cause } from "./conditions";
import { outcomeOf } from "./describe";

/** How updates end. */
const RESULTS = ["succeeded", "failed", "waiting", "interrupted"] as const;

/** Counts what updates of a kind's stacks do. */
export function countRuns(kind: AnyKind, metrics: Metrics) {
  const name = kindName(kind);
  // A rate is of a rise: without a zero before it, the first of a series is none.
  metrics.driftRepairs.inc({ kind: name }, 0);
  for (const operation of ["up", "destroy"]) {
    for (const result of RESULTS) {
      metrics.updates.inc({ kind: name, operation, result }, 0);
      metrics.updateDuration.zero({ kind: name, operation, result });
    }
  }
  return {
    /** A less strict mode holds for an object than before. */
    loosened: () => metrics.modeLoosened.setToCurrentTime({ kind: name }),
    /** An update has ended. */
    ran(result: Pick<UpResult, "summary" | "interrupted" | "failures">, cause: Cause | "Deleting") {
      const { summary, interrupted, failures } = result;
      const { startTime, endTime, resourceChanges } = summary;
      const waits = outcomeOf(failures) === "pending";
      const ended: (typeof RESULTS)[number] = waits ? "waiting" : interrupted ? "interrupted" : summary.result;
      const labels = { kind: name, operation: summary.kind === "update" ? "up" : summary.kind, result: ended };
      metrics.updates.inc(labels);
      metrics.updateDuration.observe(labels, (endTime.getTime() - startTime.getTime()) / 1000);
      for (const [change, count] of Object.entries(resourceChanges)) {
        metrics.resourceOperations.inc({ kind: name, operation: change }, count);
      }
      if (cause === "Repairing") metrics.driftRepairs.inc({ kind: name });
    },
  };
}
