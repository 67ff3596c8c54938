import { isDeepStrictEqual } from "node:util";
import type { EngineEvent, StepEventMetadata } from "@pulumi/pulumi/automation/events";
import type { OpMap, OpType } from "@pulumi/pulumi/automation/stack";
import Type from "typebox";
import { Compile } from "typebox/compile";
import { maskSecrets, unescapeReserved } from "../../providers/literal";
import type { FieldDrift, Properties } from "../../providers/provider";
import { fieldDriftSchema } from "./update-changes";
import { DYNAMIC, isScaffolding, nameOf, typeWord } from "./urn";

const driftSchema = Compile(Type.Array(fieldDriftSchema));

/** One resource as an operation left it. */
export interface StackResource {
  urn: string;
  type: string;
  name: string;
  operation: OpType;
  outputs: Properties;
  /** The drift that an update of the resource corrected, where the provider reports it ({@link DynamicProvider.read}). */
  corrected?: FieldDrift[];
}

/** What the engine's events say of one update. */
export interface EngineReport {
  /** How many resources each operation touched, without those that stayed the same. */
  changes: OpMap;
  /** The stack's own resources that took part and still exist. */
  resources: StackResource[];
  /** The deleted resources, in their last state. */
  deleted: StackResource[];
  /** What a refresh found gone, or on its way out, and the program has not made again: counted as deleted. */
  gone: StackResource[];
  /** URNs of resources whose operation failed. */
  failed: string[];
  /** The engine's error texts, with the URN of the resource, if an error names one. */
  errors: { urn?: string; message: string }[];
}

/** `Namespace namespace/acme`, as histories have it: what an operation has deleted, and what it found gone. */
export function describeDeleted({ deleted, gone }: Pick<EngineReport, "deleted" | "gone">): string[] {
  return [...deleted, ...gone].map(({ type, name }) => `${typeWord(type)} ${name}`);
}

const GONE: readonly string[] = ["delete", "delete-replaced", "discard", "remove-pending-replace"];

export function reportOf(events: Iterable<EngineEvent>): EngineReport {
  const report: EngineReport = { changes: {}, resources: [], deleted: [], gone: [], failed: [], errors: [] };
  const resources = new Map<string, StackResource>();
  /** By URN, the drift that a refresh found. */
  const found = new Map<string, FieldDrift[]>();
  /** The same as the report has, by URN. */
  const gone = new Map<string, StackResource>();
  for (const { resOutputsEvent, resOpFailedEvent, diagnosticEvent } of events) {
    if (resOutputsEvent !== undefined) {
      if (!isScaffolding(resOutputsEvent.metadata.urn)) addStep(resOutputsEvent.metadata);
    } else if (resOpFailedEvent !== undefined) {
      report.failed.push(resOpFailedEvent.metadata.urn);
    } else if (diagnosticEvent?.severity === "error") {
      const { urn, message } = diagnosticEvent;
      report.errors.push({ ...(urn && { urn }), message: plainText(message) });
    }
  }
  report.resources = [...resources.values()];
  report.gone = [...gone.values()];
  if (gone.size > 0) report.changes.delete = (report.changes.delete ?? 0) + gone.size;
  return report;

  function addStep({ op, urn, type, old, new: state }: StepEventMetadata): void {
    const operation = op as OpType;
    const resource = (outputs: Properties | undefined): StackResource => {
      return { urn, type, name: nameOf(urn), operation, outputs: unescapeReserved(maskSecrets(outputs ?? {})) };
    };
    if (operation !== "same" && operation !== "refresh") {
      report.changes[operation] = (report.changes[operation] ?? 0) + 1;
    }
    gone.delete(urn);
    if (operation === "refresh" && !state) gone.set(urn, { ...resource(old?.outputs), operation: "delete" });
    if (GONE.includes(operation) || !state) {
      if (operation !== "delete-replaced") resources.delete(urn);
      if (operation === "delete") report.deleted.push(resource(old?.outputs));
      return;
    }
    const next = resource(state.outputs);
    const corrected = found.get(urn);
    if (operation === "refresh") {
      // Our own providers say what is not as it should be; of plugins, the comparison does.
      const isOwn = type.startsWith(DYNAMIC);
      found.set(urn, isOwn ? driftIn(next.outputs) : differences(old?.outputs ?? {}, next.outputs));
    } else if (operation !== "same" && corrected?.length) next.corrected = corrected;
    resources.set(urn, next);
  }
}

function differences(wanted: Properties, live: Properties): FieldDrift[] {
  return Object.keys({ ...wanted, ...live })
    .filter((field) => !isDeepStrictEqual(wanted[field], live[field]))
    .map((field) => ({ field, wanted: wanted[field], ...(field in live && { live: live[field] }) }));
}

/** The drift that a provider reports. */
export function driftIn({ drift }: Properties): FieldDrift[] {
  return driftSchema.Check(drift) ? drift : [];
}

/** The engine marks colours as `<{%fg 1%}>`. */
function plainText(message: string): string {
  return message.replace(/<\{%.*?%\}>/g, "").trim();
}
