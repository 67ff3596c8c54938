import { TerminalError } from "../../providers/errors";

/** The times of a Lease, in milliseconds, as client-go's `leaderelection` names them. */
export interface LeaseTiming {
  /** Time without renewal after which other replicas take over. */
  leaseDurationMs: number;
  /** Time without renewal after which a replica stops its work. */
  renewDeadlineMs: number;
  /** The time between two renewals. */
  retryPeriodMs: number;
}

/** Largest random extension of the retry period, so that replicas do not all ask at once; as in client-go. */
const JITTER = 0.2;

/** @throws TerminalError `Misconfigured` when the times leave no room for what has to happen between them */
export function checkTiming({ leaseDurationMs, renewDeadlineMs, retryPeriodMs }: LeaseTiming): void {
  if (leaseDurationMs <= renewDeadlineMs) {
    throw new TerminalError("Misconfigured", "--lease-duration must be longer than --renew-deadline");
  }
  if (renewDeadlineMs <= retryPeriodMs * (1 + JITTER)) {
    throw new TerminalError("Misconfigured", "--renew-deadline must be longer than 1.2 times --retry-period");
  }
}

export function untilNextTry({ retryPeriodMs }: LeaseTiming): number {
  return retryPeriodMs * (1 + JITTER * Math.random());
}

/**
 * How long after a renewal the last process of an update is killed: late enough for an interrupted update to save, and
 * some time before others may take over.
 */
export function killAfterMs({ leaseDurationMs, renewDeadlineMs }: LeaseTiming): number {
  return leaseDurationMs - (leaseDurationMs - renewDeadlineMs) / 4;
}
