/**
 * What the work queue should do with an error.
 *
 * - `terminal`: only a change by the user helps; do not retry by the clock.
 * - `retryable`: time heals it; retry with back-off.
 * - `bug`: neither was foreseen; retried like a retryable error, but logged with its stack.
 */
export type ErrorClass = "terminal" | "retryable" | "bug";

/** An error that knows how it should be handled and what a condition's `reason` should say (CamelCase). */
export abstract class ClassifiedError extends Error {
  abstract readonly errorClass: ErrorClass;

  constructor(
    readonly reason: string,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** Only the user can put this right: a wrong table, a name that someone else holds. */
export class TerminalError extends ClassifiedError {
  readonly errorClass = "terminal";
}

/** Time may put this right: a refused connection, a conflict, an overloaded server. */
export class RetryableError extends ClassifiedError {
  readonly errorClass = "retryable";
}

/** The class of any thrown value; what nobody classified is a bug. */
export function errorClassOf(error: unknown): ErrorClass {
  return error instanceof ClassifiedError ? error.errorClass : "bug";
}

/** The condition reason of any thrown value. */
export function errorReasonOf(error: unknown): string {
  return error instanceof ClassifiedError ? error.reason : "InternalError";
}

/** The text of any thrown value. */
export function errorMessageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
