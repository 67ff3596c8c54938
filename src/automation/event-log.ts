import type { EngineEvent, StepEventMetadata } from "@pulumi/pulumi/automation/events";
import type { OpMap, OpType } from "@pulumi/pulumi/automation/stack";
import { unescapeReserved } from "../../providers/literal";
import type { Properties } from "../../providers/provider";
import { isScaffolding, nameOf } from "./urn";

/** One resource as an operation left it. */
export interface StackResource {
  urn: string;
  type: string;
  name: string;
  operation: OpType;
  outputs: Properties;
}

/** What the engine's events say of one update. */
export interface EngineReport {
  /** How many resources each operation touched, without those that stayed the same. */
  changes: OpMap;
  /** The stack's own resources that took part and still exist. */
  resources: StackResource[];
  /** Those that were deleted, as they last were. */
  deleted: StackResource[];
  /** URNs of resources whose operation failed. */
  failed: string[];
  /** The engine's error texts, each with the resource that it is about, if it is about one. */
  errors: { urn?: string; message: string }[];
}

const GONE: readonly string[] = ["delete", "delete-replaced", "discard", "remove-pending-replace"];

export function reportOf(events: Iterable<EngineEvent>): EngineReport {
  const report: EngineReport = { changes: {}, resources: [], deleted: [], failed: [], errors: [] };
  const resources = new Map<string, StackResource>();
  for (const { resOutputsEvent, resOpFailedEvent, diagnosticEvent } of events) {
    if (resOutputsEvent !== undefined) {
      const { metadata } = resOutputsEvent;
      if (!isScaffolding(metadata.urn)) addStep(report, resources, metadata);
    } else if (resOpFailedEvent !== undefined) {
      report.failed.push(resOpFailedEvent.metadata.urn);
    } else if (diagnosticEvent?.severity === "error") {
      const { urn, message } = diagnosticEvent;
      report.errors.push({ ...(urn && { urn }), message: plainText(message) });
    }
  }
  report.resources = [...resources.values()];
  return report;
}

function addStep(
  report: EngineReport,
  resources: Map<string, StackResource>,
  { op, urn, type, old, new: state }: StepEventMetadata,
): void {
  const operation = op as OpType;
  const resource = (outputs: Properties | undefined): StackResource => {
    return { urn, type, name: nameOf(urn), operation, outputs: unescapeReserved(outputs ?? {}) };
  };
  if (operation !== "same" && operation !== "refresh") {
    report.changes[operation] = (report.changes[operation] ?? 0) + 1;
  }
  if (!GONE.includes(operation) && state) {
    resources.set(urn, resource(state.outputs));
    return;
  }
  if (operation !== "delete-replaced") resources.delete(urn);
  if (operation === "delete") report.deleted.push(resource(old?.outputs));
}

/** The engine marks colours as `<{%fg 1%}>`. */
function plainText(message: string): string {
  return message.replace(/<\{%.*?%\}>/g, "").trim();
}
