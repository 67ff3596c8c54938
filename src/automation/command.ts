import { spawn } from "node:child_process";
import { RetryableError } from "../../providers/errors";
import { checkFence, currentFence } from "../../providers/fence";

/** How a CLI process ended. */
export interface CommandResult {
  exitCode: number;
  /** What ended it, when it did not end by itself. */
  signal?: NodeJS.Signals;
  stdout: string;
  stderr: string;
  /** Why we ended it, when we did. */
  interrupted?: "timeout" | "aborted";
}

export interface CommandOptions {
  cwd: string;
  env: NodeJS.ProcessEnv;
  timeoutMs: number;
  signal?: AbortSignal;
  /**
   * Called with the pid of the process group's leader; the record of it is how a restart finds leftovers. What it throws
   * ends the command and is thrown when that is gone.
   */
  onStart?: (pid: number) => void;
}

/** Why commands are aborted that must be gone after a certain time: an abort with this as its reason. */
export class UrgentAbort extends RetryableError {
  /** @param graceMs how long they have; with 0 they are killed at once */
  constructor(
    reason: string,
    message: string,
    readonly graceMs: number,
  ) {
    super(reason, message);
  }
}

/** How long an interrupted update has to write its checkpoint and release its lock before it is killed. */
const INTERRUPT_GRACE_MS = 10_000;
const MAX_OUTPUT = 256 * 1024;

/**
 * Runs the Pulumi CLI in a process group of its own, so that a Ctrl-C meant for the operator does not reach it and
 * nothing that it started outlives it.
 *
 * On time-out or abort the CLI gets one SIGINT, which makes the engine finish the current step and save; whatever is
 * left of the group after the grace period is killed.
 *
 * @throws RetryableError when the fence of the work that asks for it has come down
 */
export function runCommand(file: string, args: string[], options: CommandOptions): Promise<CommandResult> {
  if (options.signal?.aborted) {
    return Promise.resolve({ exitCode: -1, stdout: "", stderr: "", interrupted: "aborted" });
  }
  return new Promise((resolve, reject) => {
    checkFence();
    const child = spawn(file, args, {
      cwd: options.cwd,
      env: options.env,
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
    });
    let interrupted: CommandResult["interrupted"];
    let kill: NodeJS.Timeout | undefined;
    let killAt = Number.POSITIVE_INFINITY;
    let unrecorded: unknown;
    const interrupt = (reason: "timeout" | "aborted", graceMs: number) => {
      const at = performance.now() + graceMs;
      if (at >= killAt) return;
      killAt = at;
      if (graceMs === 0) signalGroup(child.pid, "SIGKILL");
      else if (interrupted === undefined) signalGroup(child.pid, "SIGINT");
      interrupted ??= reason;
      clearTimeout(kill);
      kill = setTimeout(() => signalGroup(child.pid, "SIGKILL"), graceMs);
    };
    const timeout = setTimeout(() => interrupt("timeout", INTERRUPT_GRACE_MS), options.timeoutMs);
    const signals = [options.signal, currentFence()?.signal].filter((signal) => signal !== undefined);
    const onAbort = (event: Event) => {
      const { reason } = event.target as AbortSignal;
      interrupt("aborted", reason instanceof UrgentAbort ? reason.graceMs : INTERRUPT_GRACE_MS);
    };
    const cleanUp = () => {
      clearTimeout(timeout);
      clearTimeout(kill);
      for (const signal of signals) signal.removeEventListener("abort", onAbort);
    };

    const stdout = collect(child.stdout);
    const stderr = collect(child.stderr);
    for (const signal of signals) signal.addEventListener("abort", onAbort);
    try {
      if (child.pid !== undefined) options.onStart?.(child.pid);
    } catch (error) {
      unrecorded = error;
      interrupt("aborted", 0);
    }
    child.once("error", (error) => {
      cleanUp();
      reject(error);
    });
    // What it may have left behind in its group; that would also keep the streams open, and us waiting.
    child.once("exit", () => signalGroup(child.pid, "SIGKILL"));
    child.once("close", (code, signal) => {
      cleanUp();
      if (unrecorded !== undefined) return reject(unrecorded);
      resolve({
        exitCode: code ?? -1,
        stdout: stdout(),
        stderr: stderr(),
        ...(signal && { signal }),
        ...(interrupted && { interrupted }),
      });
    });
  });
}

/** Signals a whole process group; a group that is gone already is what we wanted. */
export function signalGroup(pid: number | undefined, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/** Keeps the end of a stream: that is where errors are. */
function collect(stream: NodeJS.ReadableStream): () => string {
  let text = "";
  stream.setEncoding("utf8").on("data", (chunk: string) => {
    text = (text + chunk).slice(-MAX_OUTPUT);
  });
  return () => text;
}
