import type { Command } from "commander";
import type { ResourceOutputs } from "../preview/answers";
import { safeJson, shortValue, visible } from "../text/plain-text";
import { renderTable } from "../text/table";
import { objectCommand } from "./object-command";

export function outputsCommand(): Command {
  return objectCommand({
    name: "outputs",
    description:
      "show the resources of an object and their outputs, from the state; a table on a terminal, JSON elsewhere",
    local: (inspector, located) => inspector.outputs(located),
    remote: (inspector, request) => inspector.outputs(request),
    render: (outputs) => (process.stdout.isTTY ? outputsTable : safeJson)(outputs),
  });
}

function outputsTable(resources: readonly ResourceOutputs[]): string {
  return renderTable(
    ["type", "name", "id", "outputs"],
    resources.map(({ type, name, id, outputs }) => [
      visible(type),
      visible(name),
      visible(id),
      Object.entries(outputs)
        .filter(([, value]) => value === null || typeof value !== "object")
        .map(([property, value]) => `${visible(property)}=${shortValue(value, 40)}`)
        .join(" "),
    ]),
  );
}
