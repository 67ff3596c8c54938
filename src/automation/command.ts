import { spawn } from "node:child_process";
import { type CommandLimits, type ProcessResult, runInterruptible } from "./interruption";

export interface CommandOptions extends CommandLimits {
  cwd: string;
  env: NodeJS.ProcessEnv;
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
 * @throws as {@link runInterruptible}
 */
export function runCommand(
  file: string,
  args: string[],
  { cwd, env, onStart, ...limits }: CommandOptions,
): Promise<ProcessResult> {
  return runInterruptible(limits, () => {
    const child = spawn(file, args, { cwd, env, detached: true, stdio: ["ignore", "pipe", "pipe"] });
    const stdout = collect(child.stdout, MAX_OUTPUT.stdout);
    const stderr = collect(child.stderr, MAX_OUTPUT.stderr);
    if (child.pid !== undefined) onStart?.(child.pid);
    // What it may have left behind in its group; that would also keep the streams open, and us waiting.
    child.once("exit", () => signalGroup(child.pid, "SIGKILL"));
    const ended = new Promise<ProcessResult>((resolve, reject) => {
      child.once("error", reject);
      child.once("close", (code, signal) =>
        resolve({ exitCode: code ?? -1, stdout: stdout(), stderr: stderr(), ...(signal && { signal }) }),
      );
    });
    return {
      ended,
      interrupt: () => signalGroup(child.pid, "SIGINT"),
      kill: () => signalGroup(child.pid, "SIGKILL"),
    };
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

/** Keeps the end of a stream; there is none where a process could not be started, as file descriptors ran out. */
export function collect(stream: NodeJS.ReadableStream | undefined, length: number): () => string {
  let text = "";
  stream?.setEncoding("utf8").on("data", (chunk: string) => {
    text = (text + chunk).slice(-length);
  });
  return () => text;
}
