import { withoutInternal } from "../../providers/dynamic";
import type { LiveObject } from "../../providers/kubernetes/client";
import { MASKED } from "../../providers/literal";
import type { Properties } from "../../providers/provider";
import type { OutputsOf } from "../../stacks/contract/capabilities";
import type { AnyKind } from "../../stacks/contract/kind";
import type { KindObject } from "../../stacks/contract/object";
import type { StackResource } from "../automation/event-log";

/** The fields of a kind's status that outputs of its resources give. @see Capabilities.outputs */
export function outputFields(
  kind: AnyKind,
  object: LiveObject,
  resources: readonly StackResource[],
): object | undefined {
  const { outputs } = kind.capabilities;
  if (outputs === undefined) return undefined;
  const byName = new Map(resources.map((resource) => [resource.name, resource.outputs]));
  const outputsOf = (name: string) => {
    const found = byName.get(name);
    return found && (withoutMasked(withoutInternal(found)) as Properties);
  };
  const fields = Object.entries(outputs) as [string, (of: OutputsOf, object: KindObject) => unknown][];
  const parsed = object as unknown as KindObject; // the update has validated it
  return Object.fromEntries(fields.map(([field, give]) => [field, give(outputsOf, parsed)]));
}

function withoutMasked(value: unknown): unknown {
  if (Array.isArray(value)) return value.filter((item) => item !== MASKED).map(withoutMasked);
  if (typeof value !== "object" || value === null) return value;
  const shown = Object.entries(value).filter(([, part]) => part !== MASKED);
  return Object.fromEntries(shown.map(([name, part]) => [name, withoutMasked(part)]));
}
