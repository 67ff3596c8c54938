import { isDeepStrictEqual } from "node:util";
import type { EngineEvent, StepEventMetadata } from "@pulumi/pulumi/automation/events";
import type { OpMap, OpType } from "@pulumi/pulumi/automation/stack";
import Type from "typebox";
import { Compile } from "typebox/compile";
import { type Failure, failureOf } from "../../providers/errors";
import type { Given, ResourceFailure } from "../../providers/host/session";
import { maskSecrets, unescapeReserved } from "../../providers/literal";
import type { Observations } from "../../providers/observation";
import { withoutPasswords } from "../../providers/passwords";
import type { FieldDrift, Properties } from "../../providers/provider";
import { withTrustAdvice } from "../../providers/trust";
import { EngineGoneError } from "./engine-process";
import type { Ended } from "./interruption";
import { ENGINE } from "./messages";
import { type BindingPlan, fieldDriftSchema } from "./planned-changes";
import { DYNAMIC, isProvider, isScaffolding, nameOf, stackOf, typeOf, typeWord } from "./urn";

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

export interface EngineReport {
  /** How many resources each operation touched, without those that stayed the same. */
  changes: OpMap;
  /** The resources that took part and still exist, without the stack and its providers. */
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
      const plain = message.replace(/<\{%.*?%\}>/g, ""); // the engine marks colours as `<{%fg 1%}>`
      report.errors.push({ ...(urn && { urn }), message: plain.trim() });
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

export function driftIn({ drift }: Properties): FieldDrift[] {
  return driftSchema.Check(drift) ? drift : [];
}

export interface UpdateFailure extends Failure {
  /** The resource's name and URN, when it was about one. */
  resource?: string;
  urn?: string;
}

export const outcomeSchema = Type.Object({
  exists: Type.Boolean(),
  succeeded: Type.Boolean(),
  /** The stack is absent: it was destroyed for its object. */
  destroyed: Type.Optional(Type.Boolean()),
  /** The stack is absent, although its object has had one: nothing was done. */
  missing: Type.Optional(Type.Boolean()),
  message: Type.Optional(Type.String()),
  plan: Type.Optional(Type.Unsafe<BindingPlan>({ type: "object" })),
  /** The update ended because its next step was not in the plan. */
  outdated: Type.Optional(Type.Boolean()),
  phasesMs: Type.Record(Type.String(), Type.Number()),
});
export type EngineOutcome = Type.Static<typeof outcomeSchema>;

export interface Ran {
  stack: string;
  ended: Ended;
  /** How it ended, where the engine tells. */
  outcome?: EngineOutcome | undefined;
  events?: readonly EngineEvent[];
  refused?: readonly ResourceFailure[];
  /** See {@link ProviderSession.unrecorded}. */
  unrecorded?: boolean;
  programError?: unknown;
  /** Of a preview, see {@link ProviderSession.given}. */
  given?: ReadonlyMap<string, Given>;
  /** Of a preview that makes a plan, see {@link ProviderSession.observed}. */
  observed?: Observations;
}

/**
 * What came of an update or a preview: with the most exact account of each failure, the provider's or program's own error
 * where there is one, and with whether all the rest was done, as only operations of single resources failed.
 */
export function assess(ran: Ran, report: EngineReport, timeoutMs: number) {
  const { ended, outcome, refused = [], programError } = ran;
  if (outcome?.succeeded) return { succeeded: true, failures: [], restDone: true };
  const failed = new Set(report.failed);
  const isOneResources = (urn: string | undefined) => urn !== undefined && failed.has(urn);
  return {
    succeeded: false,
    failures: findFailures(ran, report, timeoutMs).map((failure) => ({
      ...failure,
      message: withTrustAdvice(withoutPasswords(failure.message)),
    })),
    restDone:
      [programError, ended.error, ended.interrupted, outcome?.message].every((cause) => cause === undefined) &&
      failed.size > 0 &&
      refused.every(({ urn }) => isOneResources(urn)) &&
      report.errors.every(({ urn }) => isOneResources(urn)),
  };
}

function findFailures(
  { stack, ended, outcome, refused = [], programError }: Ran,
  report: EngineReport,
  timeoutMs: number,
): UpdateFailure[] {
  if (ended.interrupted === "timeout") {
    const message = `the update took longer than ${timeoutMs / 1000} s`;
    return [{ errorClass: "retryable", reason: "Timeout", message }];
  }
  if (ended.error instanceof EngineGoneError) {
    return [{ errorClass: "retryable", reason: "Killed", message: ended.error.message }];
  }
  if (outcome?.missing) return [stateMissing(stack)];
  // A provider may have refused something as well, but only the plan tells that nothing can be tried again as it is.
  const reason = outcome?.outdated ? "PlanOutdated" : "UpdateFailed";
  const failures: UpdateFailure[] = refused.map(({ urn, ...failure }) => ({ resource: nameOf(urn), urn, ...failure }));
  if (programError !== undefined) failures.push(failureOf(programError));
  if (failures.length > 0 && !outcome?.outdated) return failures;
  const errors = [...report.errors];
  if (outcome?.message !== undefined) errors.push({ message: outcome.message });
  if (errors.length === 0) errors.push({ message: "the engine does not tell why" });
  return errors.map(({ urn, message }) => ({
    ...(urn && { resource: nameOf(urn), urn }),
    errorClass: "retryable",
    reason,
    message: withOwnAdvice(message),
    ...dependencyOf(message, urn),
  }));
}

/** What an update waits for whose provider could not be started. */
function dependencyOf(message: string, urn = ""): { dependency?: string } {
  const plugin = isProvider(urn) ? ENGINE.noPlugin.exec(message)?.groups?.plugin : undefined;
  return plugin === undefined ? {} : { dependency: plugin };
}

function stateMissing(stack: string): UpdateFailure {
  const message =
    `the stack ${stack}, which the object has had, is not in the state's backend, and was not destroyed: what it made is not known, ` +
    "so nothing is made or deleted. Is PULUMI_BACKEND_URL right? Restore the state, or decide what becomes of the object: kindstack state resolve --help";
  return { errorClass: "terminal", reason: "StateMissing", message };
}

/** Pulumi's way out of a protection does not lead to the operator's state, nor to the program of a kind. */
function withOwnAdvice(message: string): string {
  const { told, urn } = ENGINE.isProtected.exec(message)?.groups ?? {};
  if (told === undefined || urn === undefined) return message;
  const named = told.replace(`resource "${urn}"`, `${typeWord(typeOf(urn))} ${nameOf(urn)}`).replace(/\s+/g, " ");
  return (
    `${named}The deletion policy Orphan leaves it as it is. To allow its deletion, run: ` +
    `kindstack state unprotect ${stackOf(urn)} '${urn}'`
  );
}
