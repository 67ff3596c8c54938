import type { OperationSummary, UpResult } from "../../src/automation/engine";

/** What an update comes to: one that succeeds and has nothing to do, but for these differences. */
export function upResult(
  summary: Partial<Omit<OperationSummary, "startTime" | "endTime">> = {},
  rest: Partial<Omit<UpResult, "summary">> = {},
): UpResult {
  const time = new Date();
  return {
    summary: { kind: "update", startTime: time, endTime: time, result: "succeeded", resourceChanges: {}, ...summary },
    found: true,
    interrupted: false,
    unrecorded: false,
    failures: [],
    restDone: (summary.result ?? "succeeded") === "succeeded",
    resources: [],
    deleted: [],
    gone: [],
    ...rest,
  };
}
