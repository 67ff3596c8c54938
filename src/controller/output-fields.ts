import { withoutInternal } from "../../providers/dynamic";
import { isObjectOutputs } from "../../providers/kubernetes/object";
import { isSecret } from "../../providers/kubernetes/object-types";
import { MASKED } from "../../providers/literal";
import type { Properties } from "../../providers/provider";
import type { AnyKind } from "../../stacks/contract/kind";
import type { StackResource } from "../automation/event-log";

/** The fields of a kind's status that outputs of its resources give. @see Capabilities.outputs */
export function outputFields(kind: AnyKind, resources: readonly StackResource[]): object | undefined {
  const { outputs } = kind.capabilities;
  if (outputs === undefined) return undefined;
  const byName = new Map(resources.map((resource) => [resource.name, resource.outputs]));
  const outputsOf = (name: string) => {
    const found = byName.get(name);
    return found && withoutSecrets(found);
  };
  return Object.fromEntries(
    Object.entries(outputs).map(([field, give]) => [field, (give as (of: typeof outputsOf) => unknown)(outputsOf)]),
  );
}

/** Outputs without what is a secret to the engine, and without the data of a Secret, which is none to it. */
function withoutSecrets(outputs: Properties): Properties {
  const plain = withoutInternal(outputs);
  if (isObjectOutputs(outputs) && isSecret(outputs.manifest)) {
    const { data: _, stringData: __, ...manifest } = outputs.manifest;
    plain.manifest = manifest;
    delete plain.drift;
  }
  return withoutMasked(plain) as Properties;
}

function withoutMasked(value: unknown): unknown {
  if (Array.isArray(value)) return value.filter((item) => item !== MASKED).map(withoutMasked);
  if (typeof value !== "object" || value === null) return value;
  const shown = Object.entries(value).filter(([, part]) => part !== MASKED);
  return Object.fromEntries(shown.map(([name, part]) => [name, withoutMasked(part)]));
}
