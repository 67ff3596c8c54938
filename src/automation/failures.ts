import { type Failure, failureOf } from "../../providers/errors";
import type { ResourceFailure } from "../../providers/host/session";
import type { EngineReport } from "./event-log";
import { type CommandResult, withoutPasswords } from "./pulumi";
import { nameOf } from "./urn";

/** One thing that went wrong in an update. */
export interface UpdateFailure extends Failure {
  /** The resource's name and URN, when it was about one. */
  resource?: string;
  urn?: string;
}

/** What a command printed without an account of what failed is kept to this length. */
const MAX_WORDS = 64 * 1024;

const UPDATE_FAILED = /^(update|preview|destroy) failed$/;

/** What came of an update or a preview. */
export interface Assessment {
  /** Only the engine's own event counts: on a broken CLI's exit code, resources that still exist would be released. */
  succeeded: boolean;
  /** The most exact account of each failure: the provider's or program's own error where there is one. */
  failures: UpdateFailure[];
  /** Whether it went to its end, and only operations of single resources failed. */
  restDone: boolean;
}

/**
 * @param refused what the providers refused
 * @param programError what the program threw
 */
export function assess(
  result: CommandResult,
  report: EngineReport,
  refused: readonly ResourceFailure[],
  programError: unknown,
  timeoutMs: number,
): Assessment {
  if (result.exitCode === 0 && report.succeeded) return { succeeded: true, failures: [], restDone: true };
  const failed = new Set(report.failed);
  const isOneResources = (urn: string | undefined) => urn !== undefined && failed.has(urn);
  return {
    succeeded: false,
    failures: findFailures(result, report, refused, programError, timeoutMs).map((failure) => ({
      ...failure,
      message: withoutPasswords(failure.message),
    })),
    restDone:
      [programError, result.signal, result.interrupted].every((cause) => cause === undefined) &&
      failed.size > 0 &&
      refused.every(({ urn }) => isOneResources(urn)) &&
      report.errors.every(({ urn, message }) => isOneResources(urn) || UPDATE_FAILED.test(message)),
  };
}

function findFailures(
  ...[result, report, refused, programError, timeoutMs]: Parameters<typeof assess>
): UpdateFailure[] {
  if (result.interrupted === "timeout") {
    const message = `the update took longer than ${timeoutMs / 1000} s`;
    return [{ errorClass: "retryable", reason: "Timeout", message }];
  }
  if (result.signal !== undefined) {
    const message = `Pulumi was killed by ${result.signal}`;
    return [{ errorClass: "retryable", reason: "Killed", message }];
  }
  const failures: UpdateFailure[] = refused.map(({ urn, ...failure }) => ({ resource: nameOf(urn), urn, ...failure }));
  if (programError !== undefined) failures.push(failureOf(programError));
  if (failures.length > 0) return failures;
  const errors = report.errors.filter(({ message }) => !UPDATE_FAILED.test(message));
  if (errors.length === 0) {
    const output =
      (result.stderr || result.stdout || result.error?.message || "").trim().slice(-MAX_WORDS) || "no output";
    const unexplained = result.exitCode === 0 ? "Pulumi exited without reporting what it did: " : "";
    errors.push({ message: unexplained + output });
  }
  return errors.map(({ urn, message }) => ({
    ...(urn && { resource: nameOf(urn), urn }),
    errorClass: "retryable",
    reason: "UpdateFailed",
    message,
  }));
}
