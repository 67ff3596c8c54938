import { spawn } from "node:child_process";
import { checkFence } from "../../providers/fence";
import { Interruption } from "./interruption";

/** How a process ended. */
export interface ProcessResult {
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
  signal?: AbortSignal | undefined;
  /** Called with the pid of the process group's leader. */
  onStart?: (pid: number) => void;
}

/** Of a command's output, the end is kept: that is where errors are. A list of all stacks is long. */
const MAX_OUTPUT = { stdout: 16 * 1024 * 1024, stderr: 256 * 1024 };

/**
 * Runs the Pulumi CLI in a process group of its own, so that a Ctrl-C meant for the operator does not reach it and
 * nothing that it started outlives it.
 *
 * On time-out or abort the CLI gets one SIGINT, which makes the engine finish the current step and save; whatever is
 * left of the group after the grace period is killed.
 *
 * @throws RetryableError when the fence of the work that asks for it has come down
 */
export function runCommand(file: string, args: string[], options: CommandOptions): Promise<ProcessResult> {
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
    const interruption = new Interruption(
      { interrupt: () => signalGroup(child.pid, "SIGINT"), kill: () => signalGroup(child.pid, "SIGKILL") },
      options,
    );
    const stdout = collect(child.stdout, MAX_OUTPUT.stdout);
    const stderr = collect(child.stderr, MAX_OUTPUT.stderr);
    if (child.pid !== undefined) options.onStart?.(child.pid);
    child.once("error", (error) => {
      interruption.dispose();
      reject(error);
    });
    // What it may have left behind in its group; that would also keep the streams open, and us waiting.
    child.once("exit", () => signalGroup(child.pid, "SIGKILL"));
    child.once("close", (code, signal) => {
      interruption.dispose();
      resolve({
        exitCode: code ?? -1,
        stdout: stdout(),
        stderr: stderr(),
        ...(signal && { signal }),
        ...(interruption.reason && { interrupted: interruption.reason }),
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

/** Keeps the end of a stream. */
export function collect(stream: NodeJS.ReadableStream, length: number): () => string {
  let text = "";
  stream.setEncoding("utf8").on("data", (chunk: string) => {
    text = (text + chunk).slice(-length);
  });
  return () => text;
}
