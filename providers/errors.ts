import { inspect } from "node:util";
import type { Reason } from "./reasons";
import { shortened } from "./shortened";
import { withTrustAdvice } from "./trust";

/**
 * What the work queue should do with an error.
 *
 * - `terminal`: only a change by the user helps; do not retry by the clock.
 * - `retryable`: time heals it; retry with back-off.
 * - `pending`: nothing is wrong, but something else has to end first; retried on an event or after a short time,
 *   without back-off.
 * - `bug`: unforeseen; retried like a retryable error, but logged with its stack.
 */
export type ErrorClass = "terminal" | "retryable" | "pending" | "bug";

/** The Kubernetes object that an error is about, so that an event about it can lead to another try. */
export type ObjectReference = {
  apiVersion: string;
  kind: string;
  metadata: { name: string; namespace?: string; uid: string };
};

/** What a {@link ClassifiedError} may say besides its reason and message. */
export interface ErrorDetails extends ErrorOptions {
  object?: ObjectReference | undefined;
  /**
   * What is missing or away, such as `table app.students`: all that depends on it fails alike, so one object is tried for
   * all of them.
   */
  dependency?: string | undefined;
  /**
   * What `create` or `update` of a provider has made although it fails: it is recorded as the resource's id and outputs. The next update
   * calls `update` with it, and a deletion `delete`.
   */
  made?: Made | undefined;
}

interface Made {
  id: string;
  outs: object;
}

/** An error that knows how it should be handled and what a condition's `reason` should say (CamelCase). */
export abstract class ClassifiedError extends Error {
  abstract readonly errorClass: ErrorClass;
  readonly object: ObjectReference | undefined;
  /** May be added on the way, by code that knows what the error was about. */
  dependency: string | undefined;
  /** See {@link ErrorDetails.made}. */
  readonly made: Made | undefined;
  /** With the next two, {@link made} as Pulumi's script of dynamic providers looks for it. */
  id: string | undefined;
  properties: Record<string, unknown> | undefined;
  reasons: string[] | undefined;

  constructor(
    readonly reason: Reason,
    message: string,
    { object, dependency, made, ...options }: ErrorDetails = {},
  ) {
    super(message, options);
    this.name = new.target.name;
    this.object = object;
    this.dependency = dependency;
    this.made = made;
  }
}

/** Only the user can correct this: a wrong table, a name that someone else holds. */
export class TerminalError extends ClassifiedError {
  readonly errorClass = "terminal";
}

/** The author of a kind must change its program. */
export function invalidProgram(message: string): TerminalError {
  return new TerminalError("InvalidProgram", message);
}

/** Time may heal this: a refused connection, a conflict, an overloaded server. */
export class RetryableError extends ClassifiedError {
  readonly errorClass = "retryable";
}

/** Something else has to end first, such as a deletion that the API server has accepted. */
export class PendingError extends ClassifiedError {
  readonly errorClass = "pending";
}

/** What is told of an error: how it should be handled, and what a condition and an Event say. */
export interface Failure {
  errorClass: ErrorClass;
  reason: string;
  message: string;
  /** The Kubernetes object that it is about, if it names one. */
  object?: ObjectReference;
  /** See {@link ErrorDetails.dependency}. */
  dependency?: string;
}

/** What a failed call of a provider has made, as Pulumi's `ErrorResourceInitFailed` has it. */
export function initializationOf(error: unknown) {
  if (!(error instanceof ClassifiedError)) return undefined;
  const { id, properties, reasons } = error;
  return id === undefined ? undefined : { id, properties, reasons };
}

/** What is told of any thrown value: an unclassified error is a bug, unless the operating system refused something. */
export function failureOf(error: unknown): Failure {
  const message = errorMessageOf(error);
  if (error instanceof ClassifiedError) {
    const { errorClass, reason, object, dependency } = error;
    return { errorClass, reason, message, ...(object && { object }), ...(dependency && { dependency }) };
  }
  // A full disk, a directory that is not ours, no descriptor left.
  const isSystemError = error instanceof Error && "syscall" in error && "errno" in error;
  return isSystemError
    ? { errorClass: "retryable", reason: "SystemError", message }
    : { errorClass: "bug", reason: "InternalError", message };
}

export function errorMessageOf(error: unknown): string {
  if (error instanceof Error) return withTrustAdvice(messageWithCause(error));
  if (typeof error === "string" && error !== "") return error;
  return `it threw ${shortened(inspect(error, { depth: 1, breakLength: Number.POSITIVE_INFINITY }), 200)}, which is no Error`;
}

/** Errors of Kindstack have their cause's words where these help; `fetch` says no more than that it failed. */
function messageWithCause(error: Error): string {
  const { message, cause } = error;
  if (error instanceof ClassifiedError || !(cause instanceof Error)) return message;
  const reason = messageWithCause(cause);
  return message.includes(reason) ? message : `${message}: ${reason}`;
}

/** What was thrown, as an error: JavaScript can throw `null` and `undefined` as well. */
export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(errorMessageOf(thrown), { cause: thrown });
}
