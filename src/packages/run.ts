import { type ChildProcess, fork, spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import type { Socket } from "node:net";
import os from "node:os";
import { dirname, join } from "node:path";
import type { EndingReason } from "../../stacks/contract/code-ended";
import { collect } from "../automation/interruption";
import { withUnhandled } from "../automation/unhandled";
import { packageRoot } from "../package";
import { batching, type FromPackage, type ToPackage, titledCall } from "./messages";

export interface Ending {
  reason: EndingReason;
  message: string;
  /** CPU time that it has taken, where that is known. */
  cpuMs?: number | undefined;
  /** The call whose code ran, where that is certain. */
  call?: number | undefined;
}

interface RunOptions {
  entry: string;
  /** Of Node.js. */
  options: readonly string[];
  environment: NodeJS.ProcessEnv;
  /** What it may have in memory altogether. */
  memoryMib: number;
  /** Whether what it has loaded may be something else than what it is for. */
  isChanged(): boolean;
  receive(message: FromPackage): void;
  ended(ending: Ending): void;
}

/** It works for people's objects as well, which wait; but whatever it does, the operator comes first. */
const NICE = 19;
const WATCH_INTERVAL_MS = 250;
/** CPU time that code may take at once. While it does, the process answers nothing, and all objects of the package wait. */
const BLOCKING_CPU_MS = 2_000;
/** The same where nothing tells of the CPU time, or the code waits in a system call. */
const BLOCKING_MS = 30_000;
const LOADING_MS = 60_000;
const SILENT_MS = 500;
const NO_MESSAGE = "it sent what is no message of Kindstack's";
const MIB = 2 ** 20;
const PAGE_BYTES = 4096;
const TICK_MS = 10;

/** One process of a package, from its start to its end. */
export class PackageRun {
  readonly #child: ChildProcess;
  readonly #stderr: () => string;
  readonly #post: (message: ToPackage) => void;
  /** Whether the modules of the package have been evaluated. */
  isLoaded = false;
  /** What is sent to it before. */
  #early: ToPackage[] = [];
  #ending: Ending | undefined;
  #hasEnded = false;
  #pings = 0;
  /** What has not been answered, with the CPU time that the process had taken a moment before. */
  #ping: { id: number; at: number; cpuMs: number | undefined } | undefined;
  #lastCpuMs: number | undefined;
  /** Whose code runs while it does not answer, with the CPU time when that was first seen. */
  #blocking: { call: number | undefined; cpuMs: number } | undefined;
  /** Also while nothing waits for it: what calls have left behind takes time and memory as well. */
  readonly #watch: NodeJS.Timeout;

  constructor(private readonly options: RunOptions) {
    const { entry, environment } = options;
    const module = join(packageRoot, "dist/src/packages/child.js");
    const started = () =>
      fork(module, [entry], {
        cwd: dirname(entry),
        env: environment,
        execArgv: [...options.options],
        serialization: "advanced",
        stdio: ["ignore", "ignore", "pipe", "ipc"],
        detached: true, // an interrupt of the terminal is the operator's to handle
      });
    // Code that finds the channel may write anything there, which Node.js may be unable to read.
    this.#child = withUnhandled(() => this.kill({ reason: "ProgramFailed", message: NO_MESSAGE }), started);
    this.#stderr = collect(this.#child.stderr ?? undefined, 4_000);
    this.#post = batching((messages) => {
      if (this.#child.connected) this.#child.send(messages, () => undefined); // its end is told by an event
    });
    this.#child.on("message", (messages) => {
      if (!Array.isArray(messages)) return; // not of child.ts: whatever has found the channel
      for (const message of messages as FromPackage[]) this.#receive(message);
    });
    this.#child.on("error", (error) => this.#end({ reason: "ProgramFailed", message: error.message }));
    this.#child.once("close", (code, signal) => this.#end(this.#ending ?? endingOf(code, signal, this.#stderr())));
    this.#lower();
    this.#guard();
    this.#watch = setInterval(() => this.#look(), WATCH_INTERVAL_MS).unref();
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  get hasEnded(): boolean {
    return this.#hasEnded || this.#ending !== undefined;
  }

  /** Whether it has not answered for so long that what is sent to it has not begun. */
  get isSilent(): boolean {
    return !this.isLoaded || (this.#ping !== undefined && performance.now() - this.#ping.at > SILENT_MS);
  }

  send(message: ToPackage): void {
    if (this.isLoaded) this.#post(message);
    else this.#early.push(message);
  }

  kill(ending: Ending): void {
    if (this.hasEnded) return;
    this.#ending = ending;
    this.#child.kill("SIGKILL");
  }

  #receive(message: FromPackage): void {
    if (this.hasEnded) return;
    if (message.type === "loaded") this.#begin();
    else if (message.type !== "pong") this.options.receive(message);
    else if (message.id === this.#ping?.id) this.#ping = undefined;
  }

  #begin(): void {
    if (this.options.isChanged()) {
      const message = "its files have changed since the operator loaded them: undo that, or restart the operator";
      this.kill({ reason: "ProgramFailed", message });
      return;
    }
    this.isLoaded = true;
    for (const message of this.#early.splice(0)) this.#post(message);
  }

  #look(): void {
    const { memoryMib } = this.options;
    const now = performance.now();
    const { residentBytes, cpuMs } = usageOf(this.pid);
    const before = this.#lastCpuMs;
    this.#lastCpuMs = cpuMs;
    if (residentBytes !== undefined && residentBytes > memoryMib * MIB) {
      this.kill({
        reason: "OutOfMemory",
        message: `it took more than ${memoryMib} MiB, which --kind-memory allows`,
        cpuMs,
      });
    } else if (this.#ping === undefined) {
      this.#blocking = undefined;
      this.#ping = { id: ++this.#pings, at: now, cpuMs: before ?? cpuMs };
      this.send({ type: "ping", id: this.#ping.id });
    } else if (this.#isBlocked(now, cpuMs)) {
      const { call, cpuMs: since = 0 } = this.#blocking ?? {};
      this.kill({
        reason: "ProgramTimedOut",
        message: "its code ran for 2 s of CPU time, or 30 s, without a pause",
        cpuMs,
        call: (cpuMs ?? 0) - since > BLOCKING_CPU_MS / 2 ? call : undefined,
      });
    } else {
      const call = titledCall(readOf(this.pid, "cmdline"));
      if (this.#blocking?.call !== call) this.#blocking = { call, cpuMs: cpuMs ?? 0 };
    }
  }

  #isBlocked(now: number, cpuMs: number | undefined): boolean {
    const { at, cpuMs: before } = this.#ping ?? { at: now };
    if (!this.isLoaded) return now - at > LOADING_MS;
    const took = cpuMs === undefined || before === undefined ? 0 : cpuMs - before;
    return took > BLOCKING_CPU_MS || now - at > BLOCKING_MS;
  }

  #end(ending: Ending): void {
    if (this.#hasEnded) return;
    clearInterval(this.#watch);
    this.#hasEnded = true;
    this.options.ended(ending);
  }

  /** Where the system runs out of memory, it ends this process first. */
  #lower(): void {
    const { pid } = this.#child;
    if (pid === undefined) return;
    try {
      os.setPriority(pid, NICE);
      writeFileSync(`/proc/${pid}/oom_score_adj`, "1000");
    } catch {} // it has just ended, or the system has no such thing
  }

  /**
   * Has the process end with this one, also when this one is killed: while code loops, the process does not notice. Where there is no shell, as
   * in a container, the system ends the processes together.
   */
  #guard(): void {
    const { pid } = this.#child;
    if (pid === undefined) return;
    const script = 'read -r _; kill -9 "$0"'; // reads until this process has ended
    const guard = spawn("/bin/sh", ["-c", script, `${pid}`], {
      stdio: ["pipe", "ignore", "ignore"],
      detached: true,
      env: {},
    });
    guard.once("error", () => undefined);
    guard.unref();
    const input = guard.stdin as Socket | undefined; // there is none where file descriptors ran out
    input?.on("error", () => undefined).unref();
    this.#child.once("exit", () => guard.kill("SIGKILL"));
  }
}

function usageOf(pid: number | undefined): { residentBytes?: number; cpuMs?: number } {
  const stat = readOf(pid, "stat");
  if (stat === "") return {};
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [user, system, resident] = [fields[11], fields[12], fields[21]].map(Number);
  return { cpuMs: ((user ?? 0) + (system ?? 0)) * TICK_MS, residentBytes: (resident ?? 0) * PAGE_BYTES };
}

/** What Linux tells of a process; empty where it has just ended, and on other systems. */
function readOf(pid: number | undefined, file: "stat" | "cmdline"): string {
  if (pid === undefined || process.platform !== "linux") return "";
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8");
  } catch {
    return "";
  }
}

function endingOf(code: number | null, signal: NodeJS.Signals | null, stderr: string): Ending {
  if (/heap out of memory|Allocation failed/.test(stderr)) {
    return { reason: "OutOfMemory", message: "it took more heap than --kind-memory allows" };
  }
  if (signal === "SIGKILL")
    return { reason: "OutOfMemory", message: "the system killed it, most likely for its memory" };
  const said = stderr
    .split("\n")
    .find((line) => /error/i.test(line))
    ?.trim();
  const how = signal === null ? `exited with code ${code}` : `was ended by ${signal}`;
  return { reason: "ProgramFailed", message: said === undefined ? `it ${how}` : `it ${how}: ${said}` };
}
