import {
  type ClassifiedError,
  type ErrorClass,
  type Failure,
  failureOf,
  initializationOf,
  PendingError,
  RetryableError,
  TerminalError,
} from "./errors";
import type { Reason } from "./reasons";
import { NotRegisteredError } from "./registration";

/** An error as it crosses to another process. */
export interface ErrorData extends Failure {
  stack?: string;
  /** What the failed call has made, see {@link initializationOf}. */
  initialization?: ReturnType<typeof initializationOf>;
  /** See {@link NotRegisteredError}. */
  notRegistered?: true;
}

export function dataOf(error: unknown): ErrorData {
  return {
    ...failureOf(error),
    ...(error instanceof Error && error.stack !== undefined && { stack: error.stack }),
    initialization: initializationOf(error),
    ...(error instanceof NotRegisteredError && { notRegistered: true }),
  };
}

const CLASSES: Readonly<Record<Exclude<ErrorClass, "bug">, new (...given: never[]) => ClassifiedError>> = {
  terminal: TerminalError,
  retryable: RetryableError,
  pending: PendingError,
};

/** The error of {@link dataOf}, with its class. */
export function errorOf(data: ErrorData): Error {
  const { errorClass, reason, message, stack, object, dependency, initialization, notRegistered } = data;
  if (notRegistered) return new NotRegisteredError(message);
  if (errorClass === "bug") return Object.assign(new Error(message), stack !== undefined && { stack });
  const Class = CLASSES[errorClass] as new (
    reason: Reason,
    message: string,
    details: Pick<ErrorData, "object" | "dependency">,
  ) => ClassifiedError;
  const details = { ...(object && { object }), ...(dependency && { dependency }) };
  return Object.assign(new Class(reason as Reason, message, details), initialization);
}
