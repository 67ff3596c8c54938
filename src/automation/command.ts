import { spawn } from "node:child_process";

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
  /** Called with the pid of the process group's leader; the record of it is how a restart finds leftovers. */
  onStart?: (pid: number) => void;
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
 */
export function runCommand(file: string, args: string[], options: CommandOptions): Promise<CommandResult> {
  if (options.signal?.aborted) {
    return Promise.resolve({ exitCode: -1, stdout: "", stderr: "", interrupted: "aborted" });
  }
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, {
      cwd: options.cwd,
      env: options.env,
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
    });
    let interrupted: CommandResult["interrupted"];
    let kill: NodeJS.Timeout | undefined;
    const interrupt = (reason: "timeout" | "aborted") => {
      if (interrupted !== undefined) return;
      interrupted = reason;
      signalGroup(child.pid, "SIGINT");
      kill = setTimeout(() => signalGroup(child.pid, "SIGKILL"), INTERRUPT_GRACE_MS);
    };
    const timeout = setTimeout(() => interrupt("timeout"), options.timeoutMs);
    const onAbort = () => interrupt("aborted");
    const cleanUp = () => {
      clearTimeout(timeout);
      clearTimeout(kill);
      options.signal?.removeEventListener("abort", onAbort);
    };

    const stdout = collect(child.stdout);
    const stderr = collect(child.stderr);
    options.signal?.addEventListener("abort", onAbort);
    child.once("spawn", () => {
      if (child.pid !== undefined) options.onStart?.(child.pid);
    });
    child.once("error", (error) => {
      cleanUp();
      reject(error);
    });
    // What it may have left behind in its group; that would also keep the streams open, and us waiting.
    child.once("exit", () => signalGroup(child.pid, "SIGKILL"));
    child.once("close", (code, signal) => {
      cleanUp();
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
