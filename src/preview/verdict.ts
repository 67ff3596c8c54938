import { ClassifiedError, errorMessageOf } from "../../providers/errors";
import { ApiError } from "../../providers/kubernetes/client";

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
  if (/does not support dry run/.test(message)) return { type: "unknown", why: message };
  // The right is the caller's, who may lack it where the operator has it.
  const lacksRight =
    error.status === 403 && /" cannot \w+ resource "|RBAC permissions not currently held/.test(message);
  if (lacksRight) return { type: "unknown", why: `${NO_RIGHT}${message}` };
  // Fields that the schema does not have, and duplicate items, are reported as an error of the server.
  const isRefused =
    [400, 403, 413, 422].includes(error.status) ||
    /not declared in schema|duplicate entries|expected .*, got|denied (the )?request/.test(message);
  return isRefused ? { type: "invalid", message } : { type: "unknown", why: message };
}
