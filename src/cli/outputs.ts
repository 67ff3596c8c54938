import { Command } from "commander";
import { PROVIDER_PROPERTY } from "../../providers/dynamic";
import { nameOf } from "../automation/event-log";
import type { StackState } from "../automation/stack-reader";
import { safeJson, shortValue, visible } from "../preview/plain-text";
import { INSPECTION_HELP, withInspection } from "./inspection";
import { KIND_HELP, kindArgument, namedObject, namespaceOption } from "./object-argument";
import { renderTable } from "./table";

/** One thing that an object made, as its stack's state has it. */
export interface ResourceOutputs {
  type: string;
  name: string;
  id: string;
  outputs: Record<string, unknown>;
}

export function outputsCommand(): Command {
  const command = new Command("outputs")
    .description("show what an object made, from its stack's state; JSON where it is not read on a terminal")
    .argument("<kind>", KIND_HELP)
    .argument("<name>")
    .addOption(namespaceOption())
    .addHelpText("after", INSPECTION_HELP)
    .action(async (word: string, name: string, options: { namespace?: string }) => {
      const kind = kindArgument(command, word);
      await withInspection(async ({ reader, namespace, signal }) => {
        const object = namedObject(kind, name, options.namespace ?? namespace);
        const state = await reader.state(object.stack, signal);
        if (state === undefined) throw new Error(`${kind.kind} ${name} has no stack (${object.stack})`);
        const outputs = outputsOf(state);
        process.stdout.write(`${process.stdout.isTTY ? outputsTable(outputs) : safeJson(outputs)}\n`);
      });
    });
  return command;
}

/** What the custom resources in a state have become; secrets stay encrypted. */
export function outputsOf({ deployment }: StackState): ResourceOutputs[] {
  return (deployment.resources ?? [])
    .filter(({ type }) => type.startsWith("pulumi-nodejs:dynamic"))
    .map(({ urn, type, id = "", outputs: { [PROVIDER_PROPERTY]: _, ...outputs } = {} }) => ({
      type: type.split(":").at(-1) ?? type,
      name: nameOf(urn),
      id,
      outputs,
    }));
}

export function outputsTable(resources: readonly ResourceOutputs[]): string {
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
