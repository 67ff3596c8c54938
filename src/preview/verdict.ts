import { ClassifiedError, errorMessageOf } from "../../providers/errors";
import { ApiError } from "../../providers/kubernetes/client";
import { MESSAGES } from "../../providers/kubernetes/messages";

/** What the API server says of a manifest. */
export type Verdict = { type: "valid" } | { type: "invalid"; message: string } | { type: "unknown"; why: string };

/** The prefix of reasons about missing rights, which are the same for all objects. */
export const NO_RIGHT = "no right: ";

/** The meaning of a dry run's error: a refusal of the object, or a dry run that could not be sent. */
export function verdictOf(error: unknown): Verdict {
  const message = errorMessageOf(error);
  if (!(error instanceof ApiError)) {
    const isRefused = error instanceof ClassifiedError && error.errorClass === "terminal";
    return isRefused ? { type: "invalid", message: `${error.reason}: ${message}` } : { type: "unknown", why: message };
  }
  if (MESSAGES.noDryRun.test(message)) return { type: "unknown", why: message };
  // The right is the caller's, who may lack it where the operator has it.
  const lacksRight = error.status === 403 && (MESSAGES.noRight.test(message) || MESSAGES.escalation.test(message));
  if (lacksRight) return { type: "unknown", why: `${NO_RIGHT}${message}` };
  const isRefused = [400, 403, 413, 422].includes(error.status) || MESSAGES.denied.test(message);
  return isRefused ? { type: "invalid", message } : { type: "unknown", why: message };
}
