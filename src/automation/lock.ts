import { readFileSync } from "node:fs";
import { hostname, userInfo } from "node:os";

/** The place of a process's start in /proc/<pid>/stat, counted behind the name of its program, which may hold spaces. */
const STARTTIME_AFTER_NAME = 19;
const TICKS_PER_SECOND = 100; // what Linux shows to programs, whatever the kernel's own
/** Locks have whole seconds, as the time of the boot has. */
const CLOCK_TOLERANCE_MS = 5_000;

/** A lock on a stack in a self-managed backend, as the CLI's error describes it. */
export interface StackLock {
  user: string;
  host: string;
  pid: number;
  /** In milliseconds since the epoch, in whole seconds. */
  takenAt: number;
  text: string;
}

/** The locks that a command's error of the kind `locked` names. */
export function parseLocks(message: string): StackLock[] {
  return [...message.matchAll(/created by (.*?)@(\S+) \(pid (\d+)\) at (\S+)/g)].map(
    ([text, user = "", host = "", pid, takenAt = ""]) => ({
      user,
      host,
      pid: Number(pid),
      takenAt: Date.parse(takenAt),
      text,
    }),
  );
}

/**
 * Whether the process that took a lock is gone. Locks have no expiry, so a crash leaves them for ever.
 *
 * A lock of the same user on another host is taken for a predecessor's: only one operator at a time works on a stack,
 * and this one is at work; in a cluster every Pod is another host. Another user's is a person's running `pulumi up`.
 *
 * @param isOurs whether a process is this one's, and does not work on the stack: after a restart in a container it may
 *   well have its predecessor's number
 */
export function isStale(lock: StackLock, isOurs: (pid: number) => boolean = () => false): boolean {
  if (lock.host !== hostname()) return lock.user === currentUser();
  if (isOurs(lock.pid)) return true;
  try {
    process.kill(lock.pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ESRCH") return true;
  }
  return isThread(lock.pid) || !looksLikePulumi(lock.pid) || startedAfter(lock.pid, lock.takenAt);
}

/** As the CLI writes it into its locks; in a container the uid may have no name but the one in the environment. */
function currentUser(): string | undefined {
  try {
    return userInfo().username;
  } catch {
    return process.env.USER;
  }
}

/** `kill` and /proc find threads by their ids as well, and only a process takes locks. */
function isThread(pid: number): boolean {
  const [, leader] = /^Tgid:\s*(\d+)$/m.exec(readProc(pid, "status") ?? "") ?? [];
  return leader !== undefined && Number(leader) !== pid;
}

/**
 * Pids are used again, above all in a restarted container, which has its predecessor's host name: what started after the
 * lock was taken did not take it.
 */
function startedAfter(pid: number, time: number): boolean {
  const [, afterName] = /\) (.*)$/s.exec(readProc(pid, "stat") ?? "") ?? [];
  const [, bootedAt] = /^btime (\d+)$/m.exec(readProc("stat") ?? "") ?? [];
  if (afterName === undefined || bootedAt === undefined) return false;
  const ticks = Number(afterName.split(" ")[STARTTIME_AFTER_NAME]);
  return (Number(bootedAt) + ticks / TICKS_PER_SECOND) * 1000 > time + CLOCK_TOLERANCE_MS;
}

/** Pids are used again: a living process that is not a Pulumi CLI did not take the lock. */
function looksLikePulumi(pid: number): boolean {
  return readProc(pid, "cmdline")?.includes("pulumi") ?? true; // not Linux: believe the pid
}

function readProc(...segments: (string | number)[]): string | undefined {
  try {
    return readFileSync(["/proc", ...segments].join("/"), "utf8");
  } catch {
    return undefined;
  }
}
