import { withoutInternal } from "../../providers/dynamic";
import type { LiveObject } from "../../providers/kubernetes/client";
import { MASKED } from "../../providers/literal";
import type { Properties } from "../../providers/provider";
import type { OutputsOf } from "../../stacks/contract/capabilities";
import type { AnyKind, OutputField } from "../../stacks/contract/kind";
import type { KindObject } from "../../stacks/contract/object";
import type { StackResource } from "../automation/event-log";

/** The fields of a kind's status that outputs of its resources give. @see Capabilities.outputs */
export async function outputFields(
  kind: AnyKind,
  object: LiveObject,
  resources: readonly StackResource[],
): Promise<object | undefined> {
  const { outputs } = kind.capabilities;
  if (outputs === undefined) return undefined;
  const outputsOf = outputsIn(resources);
  const fields = Object.entries(outputs) as [string, OutputField][];
  const parsed = object as unknown as KindObject; // the update has validated it
  const values = fields.map(async ([field, give]) => [field, await give(outputsOf, parsed)] as const);
  return Object.fromEntries(await Promise.all(values));
}

function outputsIn(resources: readonly StackResource[]): OutputsOf {
  const shown = resources.map(
    ({ name, outputs }) => [name, withoutMasked(withoutInternal(outputs)) as Properties] as const,
  );
  const byName = new Map(shown);
  const outputsOf: OutputsOf = (name) => byName.get(name);
  behind.set(outputsOf, byName);
  return outputsOf;
}

const behind = new WeakMap<OutputsOf, ReadonlyMap<string, Properties>>();

/** All outputs that a function gives, for another process. */
export function outputsBehind(outputsOf: OutputsOf): ReadonlyMap<string, Properties> {
  return behind.get(outputsOf) ?? new Map();
}

function withoutMasked(value: unknown): unknown {
  if (Array.isArray(value)) return value.filter((item) => item !== MASKED).map(withoutMasked);
  if (typeof value !== "object" || value === null) return value;
  const shown = Object.entries(value).filter(([, part]) => part !== MASKED);
  return Object.fromEntries(shown.map(([name, part]) => [name, withoutMasked(part)]));
}
