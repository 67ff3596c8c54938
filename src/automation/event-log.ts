import Type from "typebox";
import { Compile } from "typebox/compile";
import { unescapeReserved } from "../../providers/literal";
import type { Properties } from "../../providers/provider";
import { parseJson } from "./parse-json";
import { isScaffolding, nameOf } from "./urn";

/** What the engine did to a resource. */
export type Operation =
  | "same"
  | "create"
  | "update"
  | "delete"
  | "replace"
  | "create-replacement"
  | "delete-replaced"
  | "read"
  | "refresh"
  | "discard"
  | "import"
  | "remove-pending-replace";

/** One resource as an update left it. */
export interface StackResource {
  urn: string;
  type: string;
  name: string;
  operation: Operation;
  outputs: Properties;
}

/** What the engine's event log says of one update. */
export interface EngineReport {
  /** How many resources each operation touched, without those that stayed the same. */
  changes: Partial<Record<Operation, number>>;
  /** The stack's own resources that took part and still exist. */
  resources: StackResource[];
  /** Those that were deleted, as they last were. */
  deleted: StackResource[];
  /** URNs of resources whose operation failed. */
  failed: string[];
  /** The engine's error texts, each with the resource that it is about, if it is about one. */
  errors: { urn?: string; message: string }[];
  /** Whether it ends with the engine's own account of an update that succeeded. */
  succeeded: boolean;
}

// Only what is read here; the engine's events hold more.
const propertiesSchema = Type.Optional(Type.Union([Type.Null(), Type.Unsafe<Properties>({ type: "object" })]));
const stateSchema = Type.Optional(
  Type.Union([Type.Null(), Type.Object({ inputs: propertiesSchema, outputs: propertiesSchema })]),
);
const stepSchema = Type.Object({
  metadata: Type.Object({
    op: Type.String(),
    urn: Type.String(),
    type: Type.String(),
    old: stateSchema,
    new: stateSchema,
  }),
});
const eventSchema = Compile(
  Type.Object({
    resourcePreEvent: Type.Optional(stepSchema),
    resOutputsEvent: Type.Optional(stepSchema),
    resOpFailedEvent: Type.Optional(Type.Object({ metadata: Type.Object({ urn: Type.String() }) })),
    diagnosticEvent: Type.Optional(
      Type.Object({ urn: Type.Optional(Type.String()), severity: Type.String(), message: Type.String() }),
    ),
    summaryEvent: Type.Optional(Type.Object({ result: Type.String() })),
  }),
);

const GONE: readonly string[] = ["delete", "delete-replaced", "discard", "remove-pending-replace"];

/**
 * The events of a log (newline-delimited JSON, as `--event-log` writes it); a torn last line is left out.
 *
 * @param isWorthReading told from the text, since most of a large log is not
 */
export function* eventsIn(log: string, isWorthReading: (line: string) => boolean) {
  for (const line of log.split("\n")) {
    const event = isWorthReading(line) ? parseJson(eventSchema, line) : undefined;
    if (event !== undefined) yield event;
  }
}

/** What an event log tells. */
export function readEventLog(log: string): EngineReport {
  const report: EngineReport = { changes: {}, resources: [], deleted: [], failed: [], errors: [], succeeded: false };
  const resources = new Map<string, StackResource>();
  for (const event of eventsIn(log, (line) => !line.includes('"resourcePreEvent"'))) {
    if (event.resOutputsEvent !== undefined) {
      const { op, urn, type, old, new: state } = event.resOutputsEvent.metadata;
      if (isScaffolding(urn)) continue;
      const operation = op as Operation;
      if (operation !== "same" && operation !== "refresh") {
        report.changes[operation] = (report.changes[operation] ?? 0) + 1;
      }
      if (GONE.includes(operation) || !state) {
        if (operation !== "delete-replaced") resources.delete(urn);
        if (operation === "delete") {
          report.deleted.push({ urn, type, name: nameOf(urn), operation, outputs: outputsOf(old) });
        }
      } else {
        resources.set(urn, { urn, type, name: nameOf(urn), operation, outputs: outputsOf(state) });
      }
    } else if (event.resOpFailedEvent !== undefined) {
      report.failed.push(event.resOpFailedEvent.metadata.urn);
    } else if (event.summaryEvent !== undefined) {
      report.succeeded = event.summaryEvent.result === "succeeded";
    } else if (event.diagnosticEvent?.severity === "error") {
      const { urn, message } = event.diagnosticEvent;
      report.errors.push({ ...(urn && { urn }), message: plainText(message) });
    }
  }
  report.resources = [...resources.values()];
  return report;
}

function outputsOf(state: { outputs?: Properties | null } | null | undefined): Properties {
  return unescapeReserved(state?.outputs ?? {});
}

/** The engine marks colours as `<{%fg 1%}>`. */
function plainText(message: string): string {
  return message.replace(/<\{%.*?%\}>/g, "").trim();
}
