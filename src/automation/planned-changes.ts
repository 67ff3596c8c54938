import Type from "typebox";
import { Compile } from "typebox/compile";
import { describeUnknown, unescapeReserved } from "../../providers/literal";
import type { Properties } from "../../providers/provider";
import { nameOf } from "./event-log";
import { parseJson } from "./parse-json";

/** What an update would do to a resource. */
export type PlannedOperation = "create" | "update" | "replace" | "delete" | "same";

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

// Only what is read here; the engine's events hold more.
const propertiesSchema = Type.Optional(Type.Union([Type.Null(), Type.Unsafe<Properties>({ type: "object" })]));
const stateSchema = Type.Optional(
  Type.Union([Type.Null(), Type.Object({ inputs: propertiesSchema, outputs: propertiesSchema })]),
);
const eventSchema = Compile(
  Type.Object({
    resourcePreEvent: Type.Object({
      metadata: Type.Object({
        op: Type.String(),
        urn: Type.String(),
        type: Type.String(),
        old: stateSchema,
        new: stateSchema,
      }),
    }),
  }),
);

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

/** Reads what a preview would do from its event log (newline-delimited JSON), one change for each resource. */
export function readPlannedChanges(eventLog: string): PlannedChange[] {
  const changes = new Map<string, PlannedChange>();
  for (const line of eventLog.split("\n")) {
    const metadata = parseStep(line);
    const operation = metadata && OPERATIONS[metadata.op];
    if (metadata === undefined || operation === undefined) continue;
    const { urn, type, old, new: planned } = metadata;
    if (type === "pulumi:pulumi:Stack" || type.startsWith("pulumi:providers:")) continue;
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

function parseStep(line: string) {
  if (!line.includes('"resourcePreEvent"')) return undefined;
  return unescapeReserved(describeUnknown(parseJson(eventSchema, line)?.resourcePreEvent.metadata)); // none for the torn last line of an interrupted preview
}
