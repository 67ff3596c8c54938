import { Command } from "commander";
import type { HistoryEntry } from "../automation/stack-reader";
import { safeJson, visible } from "../preview/plain-text";
import { INSPECTION_HELP, withInspection } from "./inspection";
import { KIND_HELP, kindArgument, namedObject, namespaceOption } from "./object-argument";
import { renderTable } from "./table";

export function historyCommand(): Command {
  const command = new Command("history")
    .description("show the updates of an object's stack, newest first; JSON where it is not read on a terminal")
    .argument("<kind>", KIND_HELP)
    .argument("<name>")
    .addOption(namespaceOption())
    .addHelpText("after", INSPECTION_HELP)
    .action(async (word: string, name: string, options: { namespace?: string }) => {
      const kind = kindArgument(command, word);
      await withInspection(async ({ reader, namespace, signal }) => {
        const object = namedObject(kind, name, options.namespace ?? namespace);
        const updates = await reader.history(object.stack, signal);
        if (updates === undefined) throw new Error(`${kind.kind} ${name} has no stack (${object.stack})`);
        process.stdout.write(`${process.stdout.isTTY ? historyTable(updates) : safeJson(updates.map(essence))}\n`);
      });
    });
  return command;
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
