import { RetryableError } from "../../providers/errors";
import { checkFence, currentFence } from "../../providers/fence";
import type { Reason } from "../../providers/reasons";

/** Why a command is aborted that must have ended after a certain time: an abort with this as its reason. */
export class UrgentAbort extends RetryableError {
  /** @param graceMs how long the command has; with 0 it is killed at once */
  constructor(
    reason: Reason,
    message: string,
    readonly graceMs: number,
  ) {
    super(reason, message);
  }
}

/** How long an interrupted update has to write its checkpoint and release its lock before it is killed. */
const INTERRUPT_GRACE_MS = 10_000;

export interface ProcessResult {
  exitCode: number;
  /** What ended it, when it did not end by itself. */
  signal?: NodeJS.Signals;
  stdout: string;
  stderr: string;
  /** Why we ended it, when we did. */
  interrupted?: "timeout" | "aborted";
}

/** A command that runs, and how it can be told to end. */
export interface RunningCommand<Result extends ProcessResult> {
  /** Rejects when it could not be started. */
  ended: Promise<Result>;
  /** As one SIGINT: the engine finishes the current step and saves. */
  interrupt(): void;
  /** As a second one: the engine waits for no step. */
  terminate?(): void;
  kill(): void;
}

export interface CommandLimits {
  timeoutMs: number;
  signal?: AbortSignal | undefined;
}

/**
 * Runs a command, and ends it when its time is over, its signal is aborted or the fence of the work that asks for it comes
 * down: first gently, and by force after the grace period. It is not started after an abort.
 *
 * @throws RetryableError when the fence has come down before; what keeps it from starting
 */
export async function runInterruptible<Result extends ProcessResult>(
  { timeoutMs, signal }: CommandLimits,
  start: () => RunningCommand<Result>,
): Promise<Result | ProcessResult> {
  if (signal?.aborted) return { exitCode: -1, stdout: "", stderr: "", interrupted: "aborted" };
  checkFence();
  const command = start();
  let interrupted: ProcessResult["interrupted"];
  let killAt = Number.POSITIVE_INFINITY;
  let timers: NodeJS.Timeout[] = [];
  const end = (reason: typeof interrupted, graceMs: number) => {
    const at = performance.now() + graceMs;
    if (at >= killAt) return;
    killAt = at;
    if (graceMs === 0) command.kill();
    else if (interrupted === undefined) command.interrupt();
    interrupted ??= reason;
    timers.forEach(clearTimeout);
    timers = [setTimeout(() => command.terminate?.(), graceMs / 2), setTimeout(() => command.kill(), graceMs)];
  };
  const onAbort = ({ target }: Event) => {
    const { reason } = target as AbortSignal;
    end("aborted", reason instanceof UrgentAbort ? reason.graceMs : INTERRUPT_GRACE_MS);
  };
  const timeout = setTimeout(() => end("timeout", INTERRUPT_GRACE_MS), timeoutMs);
  const signals = [signal, currentFence()?.signal];
  for (const one of signals) one?.addEventListener("abort", onAbort);
  try {
    const result = await command.ended;
    return { ...result, ...(interrupted && { interrupted }) };
  } finally {
    clearTimeout(timeout);
    timers.forEach(clearTimeout);
    for (const one of signals) one?.removeEventListener("abort", onAbort);
  }
}
