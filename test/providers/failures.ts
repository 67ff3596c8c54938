import { expect } from "vitest";
import type { ErrorClass } from "../../providers/errors";

const failure =
  (errorClass: ErrorClass) =>
  (reason: string, message: string | RegExp = "") =>
    expect.objectContaining({ errorClass, reason, message: expect.stringMatching(message) });

/** An error that time heals. */
export const retryable = failure("retryable");
/** An error that stays until the request changes. */
export const terminal = failure("terminal");

/** The error that work ends with. */
export function errorOf(work: Promise<unknown>): Promise<Error> {
  return work.then(
    () => expect.unreachable("it succeeded"),
    (error: Error) => error,
  );
}
