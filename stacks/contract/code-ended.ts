import { type ErrorDetails, RetryableError } from "../../providers/errors";
import type { Reason } from "../../providers/reasons";

export type EndingReason = Extract<Reason, "ProgramFailed" | "ProgramTimedOut" | "OutOfMemory" | "Interrupted">;

/** The code of a kind has not answered: it ended its process, or took too long. Says nothing of what it would have answered. */
export class CodeEndedError extends RetryableError {
  /** @param notBefore the code is not called before, for the same; by `performance.now()` */
  constructor(
    reason: EndingReason,
    message: string,
    readonly notBefore: number,
    details: Pick<ErrorDetails, "dependency"> = {},
  ) {
    super(reason, message, details);
  }
}
