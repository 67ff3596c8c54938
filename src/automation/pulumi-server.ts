import { type ChildProcessByStdio, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import Type from "typebox";
import { Compile } from "typebox/compile";
import { collect, signalGroup } from "./command";
import { type ProcessResult, type RunningCommand, runInterruptible } from "./interruption";
import { parseJson } from "./parse-json";
import type { Command, CommandResult, Pulumi } from "./pulumi";
import type { PulumiProcessOptions } from "./pulumi-cli";

export interface PulumiServerTiming {
  /** A server without work ends after this long. */
  idleMs?: number;
  /** A server that has work and says nothing for four times this long is taken for frozen, and killed. */
  pingMs?: number;
}

export type PulumiServerOptions = Omit<PulumiProcessOptions, "scratchDirectory"> & PulumiServerTiming;

const IDLE_MS = 60_000;
const PING_MS = 10_000;
const PINGS = 4;
/** Of what the server says when it fails, the end is logged. */
const KEPT_STDERR = 4_000;

/** A line that the server writes, besides events, which are taken as text. */
const answerSchema = Compile(
  Type.Union([
    Type.Object({ pong: Type.Number() }),
    Type.Object({
      id: Type.Number(),
      exit: Type.Object({
        code: Type.Number(),
        stdout: Type.String(),
        stderr: Type.String(),
        error: Type.Optional(
          Type.Object({
            kind: Type.Enum(["locked", "stackNotFound", "cancelled", "other"]),
            message: Type.String(),
          }),
        ),
      }),
    }),
  ]),
);

const EVENT = /^\{"id":(\d+),"event":/;

type ServerCommand = Pick<Command, "args" | "backendUrl" | "savesOnce" | "events">;
/** How a command ended, besides its events. */
type Exit = ProcessResult & Pick<CommandResult, "error">;

interface Call {
  events: string[];
  resolve(exit: Exit): void;
  reject(error: Error): void;
}

/**
 * Runs commands in one warm process, `tools/pulumi/server`, which is started for the first of them and ends when there
 * was none for a while, when this process ends in whatever way, and when its time to live is not renewed.
 */
export class PulumiServer implements Pulumi {
  readonly #options: PulumiServerOptions;
  #process: ServerProcess | undefined;
  /** On the clock of `performance.now()`. */
  #allowedUntil: number | undefined;

  constructor(options: PulumiServerOptions) {
    this.#options = options;
  }

  async run({ timeoutMs, signal, ...command }: Command): Promise<CommandResult> {
    const events: string[] = [];
    const exit = await runInterruptible({ timeoutMs, signal }, () => this.#running().run(command, events));
    return { ...exit, events: events.join("\n") };
  }

  owns(pid: number): boolean {
    return this.#process?.isOver === false && this.#process.pid === pid;
  }

  allow(ms: number): void {
    this.#allowedUntil = performance.now() + ms;
    this.#process?.allow(ms);
  }

  async close(): Promise<void> {
    await this.#process?.stop();
  }

  #running(): ServerProcess {
    if (this.#process?.isOver === false) return this.#process;
    const ttlMs = this.#allowedUntil === undefined ? undefined : this.#allowedUntil - performance.now();
    this.#process = new ServerProcess(this.#options, ttlMs);
    return this.#process;
  }
}

class ServerProcess {
  readonly #options: PulumiServerOptions;
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly #calls = new Map<number, Call>();
  readonly #ended: Promise<void>;
  readonly #stderr: () => string;
  #lastId = 0;
  #isOver: boolean;
  /** Of the end, while there is no work; else of questions for a sign of life. */
  #timer: NodeJS.Timeout | undefined;
  #unanswered = 0;

  constructor(options: PulumiServerOptions, ttlMs: number | undefined) {
    this.#options = options;
    const { file, cwd, environment } = options;
    const child = spawn(file, ttlMs === undefined ? [] : [`--ttl-ms=${wholeMs(ttlMs)}`], {
      cwd,
      env: environment,
      detached: true, // a Ctrl-C meant for this process does not reach it
      stdio: ["pipe", "pipe", "pipe"],
    });
    this.#child = child;
    this.#isOver = child.pid === undefined; // it could not be started
    this.#stderr = collect(child.stderr, KEPT_STDERR);
    this.#ended = new Promise((resolve) => {
      child.once("error", (error) => {
        if (child.pid !== undefined) return;
        for (const { reject } of this.#takeCalls()) reject(error);
        resolve();
      });
      child.once("close", (code, signal) => resolve(this.#end(code, signal)));
    });
    if (this.#isOver) return;
    child.stdin.on("error", () => undefined); // it has ended, as the event above says
    createInterface({ input: child.stdout, crlfDelay: Number.POSITIVE_INFINITY }).on("line", this.#onLine);
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** Whether it takes no more commands. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** @param events gets the engine's events */
  run({ args, ...command }: ServerCommand, events: string[]): RunningCommand<Exit> {
    const id = ++this.#lastId;
    const ended = new Promise<Exit>((resolve, reject) => this.#calls.set(id, { events, resolve, reject }));
    if (this.#calls.size === 1) this.#watch();
    this.#send({ id, run: { args: [...args, "--non-interactive", "--color", "never"], ...command } });
    return {
      ended,
      interrupt: () => this.#send({ id, cancel: "interrupt" }),
      terminate: () => this.#send({ id, cancel: "terminate" }),
      kill: () => this.#kill(),
    };
  }

  allow(ms: number): void {
    this.#send({ ttlMs: wholeMs(ms) });
  }

  /** Closes its input, upon which it ends. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    if (!this.#isOver) this.#child.stdin.end();
    this.#isOver = true;
    const kill = setTimeout(() => this.#kill(), 1_000);
    await this.#ended;
    clearTimeout(kill);
  }

  #kill(): void {
    this.#isOver = true;
    signalGroup(this.pid, "SIGKILL");
  }

  #send(message: object): void {
    if (!this.#isOver) this.#child.stdin.write(`${JSON.stringify(message)}\n`);
  }

  readonly #onLine = (line: string) => {
    this.#unanswered = 0;
    const [start, id] = EVENT.exec(line) ?? [];
    if (start !== undefined) {
      this.#calls.get(Number(id))?.events.push(line.slice(start.length, -1));
      return;
    }
    const answer = parseJson(answerSchema, line);
    if (answer === undefined) {
      this.#options.log.error({ line: line.slice(0, 200) }, "killing the Pulumi server: invalid output");
      this.#kill();
    } else if ("exit" in answer) {
      const { code: exitCode, ...exit } = answer.exit;
      this.#calls.get(answer.id)?.resolve({ exitCode, ...exit });
      this.#calls.delete(answer.id);
      if (this.#calls.size === 0) this.#endWhenIdle();
    }
  };

  /** Asks for a sign of life while there is work. Counts questions, not time: this process may have stood still itself. */
  #watch(): void {
    clearInterval(this.#timer);
    this.#unanswered = 0;
    this.#timer = setInterval(() => {
      if (this.#unanswered++ < PINGS) return this.#send({ ping: 1 });
      this.#options.log.error({ pid: this.pid }, "killing the Pulumi server: it does not answer");
      this.#kill();
    }, this.#options.pingMs ?? PING_MS);
  }

  #endWhenIdle(): void {
    clearInterval(this.#timer);
    this.#timer = setTimeout(() => void this.stop(), this.#options.idleMs ?? IDLE_MS).unref();
  }

  #takeCalls(): Call[] {
    clearInterval(this.#timer);
    this.#isOver = true;
    const calls = [...this.#calls.values()];
    this.#calls.clear();
    return calls;
  }

  #end(code: number | null, signal: NodeJS.Signals | null): void {
    signalGroup(this.pid, "SIGKILL"); // what it may have started
    if (!this.#isOver) {
      const facts = { code, signal, updates: this.#calls.size, stderr: this.#stderr().trim() };
      this.#options.log.error(facts, "the Pulumi server has ended unexpectedly");
    }
    for (const { resolve } of this.#takeCalls()) {
      resolve({ exitCode: -1, stdout: "", stderr: "", signal: signal ?? "SIGKILL" });
    }
  }
}

/** To the server, no time left would mean for ever. */
function wholeMs(ms: number): number {
  return Math.max(1, Math.ceil(ms));
}
