import type { Command } from "commander";
import { PROVIDER_PROPERTY } from "../../providers/dynamic";
import { unescapeReserved } from "../../providers/literal";
import { belongsTo, isObjectComponent } from "../../stacks/contract/shared-stack";
import { nameOf } from "../automation/event-log";
import type { StackState } from "../automation/stack-reader";
import { safeJson, shortValue, visible } from "../text/plain-text";
import { renderTable } from "../text/table";
import { objectCommand } from "./object-command";

/** One thing that an object made, as its stack's state has it. */
export interface ResourceOutputs {
  type: string;
  name: string;
  id: string;
  outputs: Record<string, unknown>;
}

export function outputsCommand(): Command {
  const description = "show what an object made, from its stack's state; JSON where it is not read on a terminal";
  return objectCommand("outputs", description, async (reader, stack, signal, key) => {
    const state = await reader.state(stack, signal);
    if (state === undefined) return undefined;
    const shared = (state.deployment.resources ?? []).filter(({ type }) => isObjectComponent(type));
    const outputs = outputsOf(state).filter(({ name }) => shared.length === 0 || belongsTo(key, name));
    return (process.stdout.isTTY ? outputsTable : safeJson)(outputs);
  });
}

/** What the custom resources in a state have become; secrets stay encrypted. */
export function outputsOf({ deployment }: StackState): ResourceOutputs[] {
  return (deployment.resources ?? [])
    .filter(({ type }) => type.startsWith("pulumi-nodejs:dynamic"))
    .map(({ urn, type, id = "", outputs: { [PROVIDER_PROPERTY]: _, ...outputs } = {} }) => ({
      type: type.split(":").at(-1) ?? type,
      name: nameOf(urn),
      id,
      outputs: unescapeReserved(outputs),
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
