import type { UpdateResult } from "../../src/automation/engine";

/** The result of an `up` that succeeded and had nothing to do, with these changes. */
export function updateResult(changes: Partial<UpdateResult> = {}): UpdateResult {
  return {
    operation: "up",
    outcome: "succeeded",
    changes: {},
    resources: [],
    deleted: [],
    failures: [],
    durationMs: 1,
    ...changes,
  };
}
