import type { Command } from "commander";
import type { HistoryEntry } from "../automation/stack-reader";
import { safeJson, visible } from "../text/plain-text";
import { renderTable } from "../text/table";
import { objectCommand } from "./object-command";

export function historyCommand(): Command {
  const description = "show the updates of an object's stack, newest first; JSON where it is not read on a terminal";
  return objectCommand("history", description, async (reader, stack, signal) => {
    const updates = await reader.history(stack, signal);
    return updates && (process.stdout.isTTY ? historyTable(updates) : safeJson(updates.map(essence)));
  });
}

/** The CLI's entries also hold its own environment, which says nothing about an object. */
function essence({ version, kind, startTime, endTime, result, resourceChanges }: HistoryEntry): Partial<HistoryEntry> {
  return {
    ...(version !== undefined && { version }),
    kind,
    startTime,
    ...(endTime !== undefined && { endTime }),
    result,
    resourceChanges: resourceChanges ?? {},
  };
}

export function historyTable(updates: readonly HistoryEntry[]): string {
  return renderTable(
    ["started", "took", "operation", "result", "changes"],
    updates.map(({ startTime, endTime, kind, result, resourceChanges = {} }) => [
      visible(startTime),
      endTime === undefined ? "" : `${((Date.parse(endTime) - Date.parse(startTime)) / 1000).toFixed(1)} s`,
      visible(kind),
      visible(result),
      Object.entries(resourceChanges)
        .filter(([operation]) => operation !== "same")
        .map(([operation, count]) => `${count} ${visible(operation)}`)
        .join(", "),
    ]),
  );
}
