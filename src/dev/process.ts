import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";

/** A process that another one cannot be taken for, even when its number is given to a new one. */
export interface ProcessIdentity {
  pid: number;
  /** When it started, in the system's own terms: compare, do not parse. */
  startedAt: string;
}

/** The process that has this number now; `undefined` when there is none, or only a zombie. */
export function identify(pid: number): ProcessIdentity | undefined {
  const startedAt = process.platform === "linux" ? startTimeFromProc(pid) : startTimeFromPs(pid);
  return startedAt === undefined ? undefined : { pid, startedAt };
}

export function isRunning(identity: ProcessIdentity): boolean {
  return identify(identity.pid)?.startedAt === identity.startedAt;
}

function startTimeFromProc(pid: number): string | undefined {
  try {
    const stat = fs.readFileSync(`/proc/${pid}/stat`, "utf8");
    // The second field is the program's name in parentheses, which may itself hold spaces and parentheses.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const [state, ticksSinceBoot] = [fields[0], fields[19]];
    if (state === "Z" || state === "X" || ticksSinceBoot === undefined) return undefined;
    return `${fs.readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()}/${ticksSinceBoot}`;
  } catch {
    return undefined;
  }
}

function startTimeFromPs(pid: number): string | undefined {
  try {
    // The time is written by the rules of the environment, and the next command may run in another one.
    const env = { ...process.env, LC_ALL: "C", TZ: "UTC" };
    const columns = ["-o", "stat=", "-o", "lstart="]; // for some, what follows the first "=" is all one heading
    const output = execFileSync("ps", [...columns, "-p", String(pid)], { encoding: "utf8", env }).trim();
    const [state = "", ...started] = output.split(/\s+/);
    return state === "" || state.startsWith("Z") ? undefined : started.join(" ");
  } catch {
    return undefined;
  }
}

/** The name of the program that a process runs, without its folder. */
export function programName(pid: number): string | undefined {
  try {
    return process.platform === "linux"
      ? fs.readFileSync(`/proc/${pid}/comm`, "utf8").trim()
      : path.basename(execFileSync("ps", ["-o", "comm=", "-p", String(pid)], { encoding: "utf8" }).trim());
  } catch {
    return undefined;
  }
}

export interface SpawnOptions {
  command: string;
  args: readonly string[];
  cwd: string;
  env: NodeJS.ProcessEnv;
  /** Gets what the process prints. What is there already is kept beside, as `<logFile>.previous`. */
  logFile: string;
  uid?: number;
  gid?: number;
}

/** A process that was started here. */
export interface StartedProcess extends ProcessIdentity {
  /** Fulfilled when it has ended, with how: "exit code 1", "SIGKILL". */
  exited: Promise<string>;
}

/** Starts a process in a process group of its own: it outlives this one and gets no signal from the terminal. */
export async function spawnDetached(options: SpawnOptions): Promise<StartedProcess> {
  if (fs.existsSync(options.logFile)) fs.renameSync(options.logFile, `${options.logFile}.previous`);
  const log = fs.openSync(options.logFile, "a", 0o600);
  let child: ChildProcess;
  try {
    child = spawn(options.command, options.args, {
      cwd: options.cwd,
      env: options.env,
      detached: true,
      stdio: ["ignore", log, log],
      ...(options.uid !== undefined && { uid: options.uid }),
      ...(options.gid !== undefined && { gid: options.gid }),
    });
  } finally {
    fs.closeSync(log);
  }
  const exited = new Promise<string>((resolve) => {
    child.once("exit", (code, signal) => resolve(signal ?? `exit code ${code}`));
  });
  await new Promise<void>((resolve, reject) => {
    child.once("spawn", resolve);
    child.once("error", (error) => reject(new Error(`${options.command} cannot be started: ${error.message}`)));
  });
  child.unref();
  const pid = child.pid as number;
  // A process that ended already has no start time any more; `exited` will tell.
  return { ...(identify(pid) ?? { pid, startedAt: "" }), exited };
}

/**
 * Asks a process to end and waits; after `seconds`, or when it has left children behind, ends its whole process group.
 * Does nothing to a process that merely has the same number.
 */
export async function stopProcess(identity: ProcessIdentity, signal: NodeJS.Signals, seconds: number): Promise<void> {
  if (isRunning(identity)) {
    sendSignal(identity.pid, signal);
    const deadline = Date.now() + seconds * 1000;
    while (isRunning(identity) && Date.now() < deadline) await delay(50);
  } else if (identify(identity.pid) !== undefined) {
    return; // The number belongs to someone else, and so does a group of that number.
  }
  sendSignal(-identity.pid, "SIGKILL");
  while (isRunning(identity)) await delay(20);
}

function sendSignal(target: number, signal: NodeJS.Signals): void {
  try {
    process.kill(target, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/** The last lines of a log file, for an error message. */
export function lastLines(file: string, count: number): string {
  try {
    return fs.readFileSync(file, "utf8").trimEnd().split("\n").slice(-count).join("\n");
  } catch {
    return "";
  }
}
