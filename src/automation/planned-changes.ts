import { isDeepStrictEqual } from "node:util";
import type { EngineEvent } from "@pulumi/pulumi/automation/events";
import type { Given } from "../../providers/host/session";
import { fieldAt } from "../../providers/kubernetes/field-path";
import { describeUnknown, maskSecrets, unescapeReserved } from "../../providers/literal";
import type { Properties } from "../../providers/provider";
import { DYNAMIC, isScaffolding, nameOf } from "./urn";

type PlannedOperation = "create" | "update" | "replace" | "delete" | "same";

/** One resource of a stack, as a preview plans it. */
export interface PlannedChange {
  urn: string;
  /** `pulumi-nodejs:dynamic/kubernetes:Namespace` */
  type: string;
  name: string;
  operation: PlannedOperation;
  /** The resource belongs to a plugin of Pulumi, which would create it again where the state lacks it. */
  ofPlugin?: true;
  /** What the state has; absent for what is new. Secrets read `[secret]`. */
  old?: { inputs: Properties; outputs: Properties };
  /** What the program gives; absent for what is deleted. */
  inputs?: Properties;
  /** The same with secrets as they are: to be asked about, and shown to no one. */
  secretInputs?(): Properties;
  /** Whether a secret in the inputs is another than in the state's outputs. */
  differsAt?(path: readonly (string | number)[]): boolean;
}

const OPERATIONS: Readonly<Record<string, PlannedOperation>> = {
  same: "same",
  create: "create",
  update: "update",
  delete: "delete",
  replace: "replace",
  // The steps that a replacement consists of.
  "create-replacement": "replace",
  "delete-replaced": "replace",
};

/**
 * What a preview would do by its events, one change for each resource.
 *
 * @param given see {@link ProviderSession.given}
 */
export function plannedChanges(
  events: Iterable<EngineEvent>,
  given: ReadonlyMap<string, Given> = new Map(),
): PlannedChange[] {
  const changes = new Map<string, PlannedChange>();
  for (const { resourcePreEvent } of events) {
    const step = unescapeReserved(describeUnknown(maskSecrets(resourcePreEvent?.metadata)));
    const operation = step && OPERATIONS[step.op];
    if (step === undefined || operation === undefined || isScaffolding(step.urn)) continue;
    const { urn, type, old, new: planned } = step;
    const sides = given.get(urn);
    changes.set(urn, {
      ...changes.get(urn),
      urn,
      type,
      name: nameOf(urn),
      operation,
      ...(planned?.custom && !type.startsWith(DYNAMIC) && { ofPlugin: true }),
      ...(old && { old: { inputs: old.inputs ?? {}, outputs: old.outputs ?? {} } }),
      ...(planned && { inputs: planned.inputs ?? {} }),
      ...(sides && secretsOf(sides)),
    });
  }
  return [...changes.values()];
}

function secretsOf({ news, olds }: Given): Pick<PlannedChange, "secretInputs" | "differsAt"> {
  return {
    secretInputs: () => unescapeReserved(describeUnknown(news)),
    ...(olds && { differsAt: (path) => !isDeepStrictEqual(fieldAt(olds, path), fieldAt(news, path)) }),
  };
}
