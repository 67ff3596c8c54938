import type { Command } from "commander";
import { countsOf, type ResourceChange } from "../automation/update-changes";
import type { StackUpdate } from "../preview/answers";
import { safeJson, visible } from "../text/plain-text";
import { renderTable } from "../text/table";
import { objectCommand } from "./object-command";

export function historyCommand(): Command {
  return objectCommand({
    name: "history",
    description: "show the updates of an object's stack, newest first; a table on a terminal, JSON elsewhere",
    local: (inspector, located) => inspector.history(located),
    remote: (inspector, request) => inspector.history(request),
    render: (updates) => (process.stdout.isTTY ? historyTable(updates) : safeJson(updates)),
  });
}

function historyTable(updates: readonly StackUpdate[]): string {
  return renderTable(
    ["started", "took", "operation", "result", "changes"],
    updates.map(({ startTime, endTime, kind, result, resourceChanges, changes }) => [
      visible(startTime),
      endTime === undefined ? "" : `${((Date.parse(endTime) - Date.parse(startTime)) / 1000).toFixed(1)} s`,
      visible(kind),
      visible(result),
      visible(changes === undefined ? countsOf(resourceChanges) : namesOf(changes)),
    ]),
  );
}

const SHOWN_CHANGES = 3;

function namesOf(changes: readonly ResourceChange[]): string {
  const shown = changes.slice(0, SHOWN_CHANGES).map(({ operation, type, name }) => `${operation} ${type} ${name}`);
  if (changes.length > shown.length) shown.push(`${changes.length - shown.length} more`);
  return shown.join(", ");
}
