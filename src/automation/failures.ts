import type { EngineEvent } from "@pulumi/pulumi/automation/events";
import Type from "typebox";
import { type Failure, failureOf } from "../../providers/errors";
import type { Given, ResourceFailure } from "../../providers/host/session";
import type { Observations } from "../../providers/observation";
import { withoutPasswords } from "../../providers/passwords";
import type { BindingPlan } from "./binding-plan";
import { EngineGoneError } from "./engine-process";
import type { EngineReport } from "./event-log";
import type { Ended } from "./interruption";
import { nameOf, stackOf } from "./urn";

/** One thing that went wrong in an update. */
export interface UpdateFailure extends Failure {
  /** The resource's name and URN, when it was about one. */
  resource?: string;
  urn?: string;
}

/** How an operation ended, as the engine says itself. */
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

/** What an operation came to. */
export interface Ran {
  stack: string;
  ended: Ended;
  /** How it ended, where the engine tells. */
  outcome: EngineOutcome | undefined;
  events: readonly EngineEvent[];
  /** What the providers refused. */
  refused: readonly ResourceFailure[];
  /** What the program threw. */
  programError: unknown;
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
  const { ended, outcome, refused, programError } = ran;
  if (outcome?.succeeded) return { succeeded: true, failures: [], restDone: true };
  const failed = new Set(report.failed);
  const isOneResources = (urn: string | undefined) => urn !== undefined && failed.has(urn);
  return {
    succeeded: false,
    failures: findFailures(ran, report, timeoutMs).map((failure) => ({
      ...failure,
      message: withoutPasswords(failure.message),
    })),
    restDone:
      [programError, ended.error, ended.interrupted, outcome?.message].every((cause) => cause === undefined) &&
      failed.size > 0 &&
      refused.every(({ urn }) => isOneResources(urn)) &&
      report.errors.every(({ urn }) => isOneResources(urn)),
  };
}

function findFailures(
  { stack, ended, outcome, refused, programError }: Ran,
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
  }));
}

function stateMissing(stack: string): UpdateFailure {
  const message =
    `the stack ${stack}, which the object has had, is not in the state's backend, and was not destroyed: what it made is not known, ` +
    "so nothing is made or deleted. Is PULUMI_BACKEND_URL right? Restore the state, or decide what becomes of the object: kindstack state resolve --help";
  return { errorClass: "terminal", reason: "StateMissing", message };
}

/** Pulumi's way out of a protection does not lead to the operator's state, nor to the program of a kind. */
function withOwnAdvice(message: string): string {
  const [told, advice] = message.split("To unprotect the resource, ");
  const urn = /resource "(urn:pulumi:[^"]+)"/.exec(told ?? "")?.[1];
  if (told === undefined || advice === undefined || urn === undefined) return message;
  return (
    `${told.replace(/\s+/g, " ")}The deletion policy Orphan leaves it as it is. To allow its deletion, run: ` +
    `kindstack state unprotect ${stackOf(urn)} '${urn}'`
  );
}
