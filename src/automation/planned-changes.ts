import type { EngineEvent } from "@pulumi/pulumi/automation/events";
import { describeUnknown, unescapeReserved } from "../../providers/literal";
import type { Properties } from "../../providers/provider";
import { isScaffolding, nameOf } from "./urn";

type PlannedOperation = "create" | "update" | "replace" | "delete" | "same";

/** One resource of a stack, as a preview plans it. */
export interface PlannedChange {
  urn: string;
  /** `pulumi-nodejs:dynamic/kubernetes:Namespace` */
  type: string;
  name: string;
  operation: PlannedOperation;
  /** What the state has; absent for what is new. Secrets read `[secret]`. */
  old?: { inputs: Properties; outputs: Properties };
  /** What the program gives; absent for what is deleted. */
  inputs?: Properties;
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

/** What a preview would do by its events, one change for each resource. */
export function plannedChanges(events: Iterable<EngineEvent>): PlannedChange[] {
  const changes = new Map<string, PlannedChange>();
  for (const { resourcePreEvent } of events) {
    const step = unescapeReserved(describeUnknown(resourcePreEvent?.metadata));
    const operation = step && OPERATIONS[step.op];
    if (step === undefined || operation === undefined || isScaffolding(step.urn)) continue;
    const { urn, type, old, new: planned } = step;
    changes.set(urn, {
      ...changes.get(urn),
      urn,
      type,
      name: nameOf(urn),
      operation,
      ...(old && { old: { inputs: old.inputs ?? {}, outputs: old.outputs ?? {} } }),
      ...(planned && { inputs: planned.inputs ?? {} }),
    });
  }
  return [...changes.values()];
}
