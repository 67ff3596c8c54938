import { execFileSync, type SpawnOptions, spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { errorMessageOf } from "../../providers/errors";

/** Identifies a process, even when its pid is reused. */
export interface ProcessIdentity {
  pid: number;
  /** When it started, in the system's own terms: compare, do not parse. */
  startedAt: string;
}

/** The process with this pid; `undefined` when there is none, or only a zombie. */
export function identify(pid: number): ProcessIdentity | undefined {
  const found = lookUp(pid);
  return found === undefined || /^[ZX]/.test(found.state) ? undefined : { pid, startedAt: found.startedAt };
}

export function isRunning(identity: ProcessIdentity): boolean {
  return identify(identity.pid)?.startedAt === identity.startedAt;
}

/** The name of the program that a process runs, without its folder. */
export function programName(pid: number): string | undefined {
  return lookUp(pid)?.program;
}

function lookUp(pid: number) {
  try {
    return process.platform === "linux" ? lookUpInProc(pid) : lookUpByPs(pid);
  } catch {
    return undefined;
  }
}

function lookUpInProc(pid: number) {
  // The second field is the program's name in parentheses, which may itself hold spaces and parentheses.
  const [, program = "", rest = ""] = /\((.*)\) (.*)/s.exec(fs.readFileSync(`/proc/${pid}/stat`, "utf8")) ?? [];
  const fields = rest.split(" ");
  const [state = "", ticksSinceBoot] = [fields[0], fields[19]];
  const boot = fs.readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  return { program, state, startedAt: `${boot}/${ticksSinceBoot}` };
}

function lookUpByPs(pid: number) {
  const columns = ["stat", "lstart", "comm"].flatMap((column) => ["-o", `${column}=`]);
  // `ps` formats the time by the environment, which may differ for the next command.
  const env = { ...process.env, LC_ALL: "C", TZ: "UTC" };
  const [state = "", ...words] = execFileSync("ps", [...columns, "-p", String(pid)], { encoding: "utf8", env })
    .trim()
    .split(/\s+/);
  return { program: path.basename(words.slice(5).join(" ")), state, startedAt: words.slice(0, 5).join(" ") };
}

/**
 * Starts a process in a process group of its own: the new process outlives its parent and gets no signal from the terminal.
 *
 * @param logFile the output of the process; an earlier log is kept as `<logFile>.previous`
 * @returns with `exited`, fulfilled when the process has ended, with how: "exit code 1", "SIGKILL"
 */
export async function spawnDetached(
  command: string,
  args: readonly string[],
  logFile: string,
  options: Pick<SpawnOptions, "cwd" | "env" | "uid" | "gid">,
): Promise<ProcessIdentity & { exited: Promise<string> }> {
  if (fs.existsSync(logFile)) fs.renameSync(logFile, `${logFile}.previous`);
  const log = fs.openSync(logFile, "a", 0o600);
  const child = spawn(command, args, { ...options, detached: true, stdio: ["ignore", log, log] });
  fs.closeSync(log);
  child.unref();
  const exited = once(child, "exit").then(([code, signal]): string => signal ?? `exit code ${code}`);
  const { pid } = child;
  if (pid === undefined) {
    throw new Error(`${command} cannot be started: ${errorMessageOf(await exited.catch((error: unknown) => error))}`);
  }
  // A process that has ended has no start time any more; `exited` will tell.
  return { ...(identify(pid) ?? { pid, startedAt: "" }), exited };
}

/**
 * Asks a process to exit and waits; after `seconds`, or when it has left children, kills its process group. Leaves
 * alone another process with the same pid.
 */
export async function stopProcess(identity: ProcessIdentity, signal: NodeJS.Signals, seconds: number): Promise<void> {
  if (isRunning(identity)) {
    sendSignal(identity.pid, signal);
    const deadline = Date.now() + seconds * 1000;
    while (isRunning(identity) && Date.now() < deadline) await delay(50);
  } else if (identify(identity.pid) !== undefined) {
    return; // The pid belongs to another process, and so does a group of that number.
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

export function lastLines(file: string, count: number): string {
  try {
    return fs.readFileSync(file, "utf8").trimEnd().split("\n").slice(-count).join("\n");
  } catch {
    return "";
  }
}
