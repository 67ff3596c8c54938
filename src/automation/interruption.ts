import { RetryableError } from "../../providers/errors";
import { currentFence } from "../../providers/fence";
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

/** How a command can be told to end. */
export interface Interruptible {
  /** As one SIGINT: the engine finishes the current step and saves. */
  interrupt(): void;
  /** As a second one: the engine waits for no step. */
  terminate?(): void;
  kill(): void;
}

/**
 * Ends a command when its time is over, its signal is aborted or the fence of the work that asks for it comes down:
 * first gently, and by force after the grace period.
 */
export class Interruption {
  #reason: "timeout" | "aborted" | undefined;
  #killAt = Number.POSITIVE_INFINITY;
  #timers: NodeJS.Timeout[] = [];
  readonly #timeout: NodeJS.Timeout;
  readonly #signals: AbortSignal[];
  readonly #command: Interruptible;

  constructor(command: Interruptible, { timeoutMs, signal }: { timeoutMs: number; signal?: AbortSignal | undefined }) {
    this.#command = command;
    this.#timeout = setTimeout(() => this.#end("timeout", INTERRUPT_GRACE_MS), timeoutMs);
    this.#signals = [signal, currentFence()?.signal].filter((one) => one !== undefined);
    for (const one of this.#signals) one.addEventListener("abort", this.#onAbort);
  }

  /** Why the command was told to end, if it was. */
  get reason(): "timeout" | "aborted" | undefined {
    return this.#reason;
  }

  /** The command has ended. */
  dispose(): void {
    clearTimeout(this.#timeout);
    for (const timer of this.#timers) clearTimeout(timer);
    for (const one of this.#signals) one.removeEventListener("abort", this.#onAbort);
  }

  readonly #onAbort = (event: Event) => {
    const { reason } = event.target as AbortSignal;
    this.#end("aborted", reason instanceof UrgentAbort ? reason.graceMs : INTERRUPT_GRACE_MS);
  };

  #end(reason: "timeout" | "aborted", graceMs: number): void {
    const at = performance.now() + graceMs;
    if (at >= this.#killAt) return;
    this.#killAt = at;
    const command = this.#command;
    if (graceMs === 0) command.kill();
    else if (this.#reason === undefined) command.interrupt();
    this.#reason ??= reason;
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers = [setTimeout(() => command.terminate?.(), graceMs / 2), setTimeout(() => command.kill(), graceMs)];
  }
}
