import { readdirSync, readFileSync } from "node:fs";
import { RetryableError } from "../../providers/errors";
import type { Fence } from "../../providers/fence";
import type { Reason } from "../../providers/reasons";

/** The reason of an abort after which an operation must end within a certain time. */
export class UrgentAbort extends RetryableError {
  /** @param graceMs how long the operation has; with 0 its process is killed at once */
  constructor(
    reason: Reason,
    message: string,
    readonly graceMs: number,
  ) {
    super(reason, message);
  }
}

/** How long an interrupted operation has to save its state and release its lock before its process is killed. */
const INTERRUPT_GRACE_MS = 10_000;

/** An operation that runs, and how it can be told to end. */
export interface RunningCommand {
  ended: Promise<unknown>;
  /** The engine finishes the current step and saves. */
  interrupt(): void;
  /** The engine waits for no step. */
  terminate(): void;
  kill(): void;
}

interface Interruptions {
  timeoutMs: number;
  signal: AbortSignal | undefined;
  stop: AbortSignal | undefined;
  fence: Fence | undefined;
}

/** How an operation ended, and why we ended it, when we did. */
export interface Ended {
  result?: unknown;
  error?: unknown;
  interrupted?: "timeout" | "aborted";
  /** Whether a step was not waited for: what it has made may be in no state. */
  cutOff?: true;
}

/**
 * Runs an operation, and ends it at its time-out, when its signal is aborted, or when the fence of the calling work comes
 * down: first gently, and by force after the grace period. After an abort, the operation is not started.
 *
 * @param stop ends it gently alone: no step is cut off, and its time-out still holds
 *
 * @throws RetryableError when the fence has come down before
 */
export async function runInterruptible(
  { timeoutMs, signal, stop, fence }: Interruptions,
  start: () => RunningCommand,
): Promise<Ended> {
  if (signal?.aborted || stop?.aborted) return { interrupted: "aborted" };
  fence?.check();
  const command = start();
  let interrupted: Ended["interrupted"];
  let cutOff: Ended["cutOff"];
  let killAt = Number.POSITIVE_INFINITY;
  let timers: NodeJS.Timeout[] = [];
  const cut = (how: "terminate" | "kill") => {
    cutOff = true;
    command[how]();
  };
  const end = (reason: typeof interrupted, graceMs: number) => {
    const at = performance.now() + graceMs;
    if (at >= killAt) return;
    killAt = at;
    if (graceMs === 0) cut("kill");
    else if (interrupted === undefined) command.interrupt();
    interrupted ??= reason;
    timers.forEach(clearTimeout);
    timers = [setTimeout(() => cut("terminate"), graceMs / 2), setTimeout(() => cut("kill"), graceMs)];
  };
  const onStop = () => {
    if (interrupted === undefined) command.interrupt();
    interrupted ??= "aborted";
  };
  const onAbort = ({ target }: Event) => {
    const { reason } = target as AbortSignal;
    end("aborted", reason instanceof UrgentAbort ? reason.graceMs : INTERRUPT_GRACE_MS);
  };
  const timeout = setTimeout(() => end("timeout", INTERRUPT_GRACE_MS), timeoutMs);
  const signals = [signal, fence?.signal];
  for (const one of signals) one?.addEventListener("abort", onAbort);
  stop?.addEventListener("abort", onStop);
  try {
    const ended = await command.ended.then(
      (result): Ended => ({ result }),
      (error: unknown): Ended => ({ error }),
    );
    return { ...ended, ...(interrupted && { interrupted }), ...(cutOff && { cutOff }) };
  } finally {
    clearTimeout(timeout);
    timers.forEach(clearTimeout);
    for (const one of signals) one?.removeEventListener("abort", onAbort);
    stop?.removeEventListener("abort", onStop);
  }
}

/** Kills a whole process group. Throws nothing, as timers call it: the group is gone already, or another user's. */
export function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {}
}

/** Kills the processes of a session whose leader has ended, where the system lists them, and the leader's group elsewhere. */
export function killSession(leader: number | undefined): void {
  killGroup(leader);
  if (leader === undefined) return;
  for (const entry of processes()) {
    const [pid, session] = [Number(entry), sessionOf(entry)];
    if (session === leader) killGroup(pid);
  }
}

function processes(): string[] {
  try {
    return process.platform === "linux" ? readdirSync("/proc") : [];
  } catch {
    return []; // file descriptors ran out
  }
}

/** The sixth field of a process's `stat`; its second may have spaces and is in parentheses. */
function sessionOf(pid: string): number | undefined {
  if (!/^\d+$/.test(pid)) return undefined;
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[3]);
  } catch {
    return undefined; // it has just ended
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
