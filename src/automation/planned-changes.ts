import { isDeepStrictEqual } from "node:util";
import type { EngineEvent } from "@pulumi/pulumi/automation/events";
import Type from "typebox";
import type { Given } from "../../providers/host/session";
import { fieldAt } from "../../providers/kubernetes/field-path";
import { describeUnknown, maskSecrets, unescapeReserved } from "../../providers/literal";
import type { FieldDrift, Properties } from "../../providers/provider";
import { describeChange, visible } from "../text/plain-text";
import { DYNAMIC, isScaffolding, nameOf } from "./urn";

type PlannedOperation = "create" | "update" | "replace" | "delete" | "same";

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
  // What a transform asks for: `import` among the options of a resource is refused.
  import: "create",
  "import-replacement": "replace",
};

/** What a preview would do by its events, one change for each resource. */
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

/** See {@link FieldDrift}. */
export const fieldDriftSchema = Type.Object({
  field: Type.String(),
  wanted: Type.Unknown(),
  live: Type.Optional(Type.Unknown()),
  by: Type.Optional(Type.String()),
});

export const resourceChangeSchema = Type.Object({
  operation: Type.Enum(["create", "adopt", "update", "replace", "delete"]),
  type: Type.String(),
  name: Type.String(),
  /** The corrected drift: fields that other clients had changed. */
  drift: Type.Optional(Type.Array(fieldDriftSchema)),
});
export type ResourceChange = Type.Static<typeof resourceChangeSchema>;

/**
 * What an update did, as its history has it: the first changes, and the first of those that it has not finished. Where only their
 * number is known, that: `2 create, 1 update`. A message, such as of the CLI, may say anything.
 */
export function describeUpdate(
  update: {
    changes?: readonly ResourceChange[];
    unfinished?: readonly ResourceChange[];
    resourceChanges?: Readonly<Record<string, number>>;
    message?: string;
  },
  most: number,
): string[] {
  const { changes, unfinished = [], resourceChanges, message } = update;
  const done = changes === undefined ? [countsOf(resourceChanges)].filter(Boolean) : listChanges(changes, most);
  const missing = listChanges(unfinished, most).map((change) => `unfinished: ${change}`);
  return [...done, ...missing, ...(message ? [`message: ${visible(message)}`] : [])];
}

/** Without what stayed the same. */
function countsOf(resourceChanges: Readonly<Record<string, number>> = {}): string {
  return Object.entries(resourceChanges)
    .filter(([operation]) => operation !== "same")
    .map(([operation, count]) => `${count} ${operation}`)
    .join(", ");
}

/** `spec.replicas 3 → 1 (kubectl-edit)`: a field that was corrected, and who had changed it. */
function describeDrift({ field, wanted, live, by }: FieldDrift): string {
  return `${field} ${describeChange(live, wanted).join(" → ")}${by === undefined ? "" : ` (${by})`}`;
}

/** `create Pod web/a` for each of the first changes, with what each corrected, then how many more there are. */
function listChanges(changes: readonly ResourceChange[], most: number): string[] {
  const lines = changes.slice(0, most).map(({ operation, type, name, drift = [] }) => {
    const corrected = drift.map(describeDrift).join("; ");
    return `${operation} ${type} ${name}${corrected && `: ${corrected}`}`;
  });
  return changes.length > most ? [...lines, `${changes.length - most} more`] : lines;
}

/** `1.5 s`: how long an update took, by its history entry; `undefined` for a running update. */
export function durationOf({ startTime, endTime }: { startTime: Date | string; endTime?: Date | string }) {
  return endTime && `${((+new Date(endTime) - +new Date(startTime)) / 1000).toFixed(1)} s`;
}

/**
 * The engine's plan of a preview, opaque, with secrets encrypted as in a state. It is valid in this process, for one reconcile,
 * and is never stored.
 */
export type BindingPlan = object & { readonly [BINDING]: true };
declare const BINDING: unique symbol;
