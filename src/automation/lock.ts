import { readFileSync } from "node:fs";
import { hostname, userInfo } from "node:os";

/** A lock on a stack in a self-managed backend, as the CLI's error describes it. */
export interface StackLock {
  user: string;
  host: string;
  pid: number;
  text: string;
}

/** The locks that a command's error of the kind `locked` names. */
export function parseLocks(message: string): StackLock[] {
  return [...message.matchAll(/created by (.*?)@(\S+) \(pid (\d+)\) at \S+/g)].map(
    ([text, user = "", host = "", pid]) => ({
      user,
      host,
      pid: Number(pid),
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
  return !looksLikePulumi(lock.pid);
}

/** As the CLI writes it into its locks; in a container the uid may have no name but the one in the environment. */
function currentUser(): string | undefined {
  try {
    return userInfo().username;
  } catch {
    return process.env.USER;
  }
}

/** Pids are used again: a living process that is not a Pulumi CLI did not take the lock. */
function looksLikePulumi(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("pulumi");
  } catch {
    return true; // not Linux: believe the pid
  }
}
