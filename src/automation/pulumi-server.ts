import { type ChildProcessByStdio, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import Type from "typebox";
import { Compile } from "typebox/compile";
import { checkFence } from "../../providers/fence";
import { collect, signalGroup } from "./command";
import { Interruption } from "./interruption";
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
            kind: Type.Union([
              Type.Literal("locked"),
              Type.Literal("stackNotFound"),
              Type.Literal("cancelled"),
              Type.Literal("other"),
            ]),
            message: Type.String(),
          }),
        ),
      }),
    }),
  ]),
);

const EVENT = /^\{"id":(\d+),"event":/;

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

interface Call {
  events: string[];
  end(result: Omit<CommandResult, "events" | "interrupted">): void;
}

/**
 * Runs commands in one warm process, `tools/pulumi/server`, which is started for the first of them and ends when there
 * was none for a while, when this process ends in whatever way, and when its time to live is not renewed.
 */
export class PulumiServer implements Pulumi {
  readonly #options: PulumiServerOptions;
  #process: ServerProcess | undefined;
  #idle: NodeJS.Timeout | undefined;
  /** On the clock of `performance.now()`. */
  #allowedUntil: number | undefined;

  constructor(options: PulumiServerOptions) {
    this.#options = options;
  }

  async run(command: Command): Promise<CommandResult> {
    if (command.signal?.aborted) {
      return { exitCode: -1, stdout: "", stderr: "", events: "", interrupted: "aborted" };
    }
    checkFence();
    clearTimeout(this.#idle);
    const server = this.#running();
    try {
      return await server.run(command);
    } finally {
      if (this.#process === server && server.isIdle) {
        clearTimeout(this.#idle);
        this.#idle = setTimeout(() => this.#stop(), this.#options.idleMs ?? IDLE_MS).unref();
      }
    }
  }

  owns(pid: number): boolean {
    return this.#process?.pid === pid;
  }

  allow(ms: number): void {
    this.#allowedUntil = performance.now() + ms;
    this.#process?.allow(ms);
  }

  async close(): Promise<void> {
    clearTimeout(this.#idle);
    await this.#stop();
  }

  #running(): ServerProcess {
    if (this.#process?.hasEnded === false) return this.#process;
    const ttlMs = this.#allowedUntil === undefined ? undefined : Math.max(1, this.#allowedUntil - performance.now());
    const server = new ServerProcess(this.#options, ttlMs);
    this.#process = server;
    return server;
  }

  #stop(): Promise<void> | undefined {
    const server = this.#process;
    this.#process = undefined;
    return server?.stop();
  }
}

class ServerProcess {
  readonly #options: PulumiServerOptions;
  readonly #child: Child;
  readonly #calls = new Map<number, Call>();
  readonly #ended: Promise<void>;
  readonly #stderr: () => string;
  #lastId = 0;
  #hasEnded = false;
  #isStopping = false;
  #isKilled = false;
  /** What kept it from starting. */
  #error: Error | undefined;
  #pings: NodeJS.Timeout | undefined;
  #unanswered = 0;

  constructor(options: PulumiServerOptions, ttlMs: number | undefined) {
    this.#options = options;
    const { file, cwd, environment } = options;
    this.#child = spawn(file, ttlMs === undefined ? [] : [`--ttl-ms=${Math.ceil(ttlMs)}`], {
      cwd,
      env: environment,
      detached: true, // a Ctrl-C meant for this process does not reach it
      stdio: ["pipe", "pipe", "pipe"],
    });
    this.#child.stdin.on("error", () => undefined); // it has ended, as the event below says
    this.#stderr = collect(this.#child.stderr, KEPT_STDERR);
    createInterface({ input: this.#child.stdout, crlfDelay: Number.POSITIVE_INFINITY }).on("line", this.#onLine);
    this.#ended = new Promise((resolve) => {
      this.#child.once("error", (error) => {
        this.#error = error;
        if (this.#child.pid === undefined) this.#end(null, null, resolve);
      });
      this.#child.once("close", (code, signal) => this.#end(code, signal, resolve));
    });
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  get hasEnded(): boolean {
    return this.#hasEnded || this.#isStopping;
  }

  get isIdle(): boolean {
    return this.#calls.size === 0;
  }

  /** @throws Error when the process could not be started */
  run({ args, timeoutMs, signal, backendUrl, savesOnce, events }: Command): Promise<CommandResult> {
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      const interruption = new Interruption(
        {
          interrupt: () => this.#send({ id, cancel: "interrupt" }),
          terminate: () => this.#send({ id, cancel: "terminate" }),
          kill: () => this.kill(),
        },
        { timeoutMs, signal },
      );
      const call: Call = {
        events: [],
        end: (result) => {
          interruption.dispose();
          this.#calls.delete(id);
          if (this.isIdle) clearInterval(this.#pings);
          if (this.#error !== undefined && this.pid === undefined) return reject(this.#error);
          const interrupted = interruption.reason;
          resolve({ ...result, events: call.events.join("\n"), ...(interrupted && { interrupted }) });
        },
      };
      this.#calls.set(id, call);
      if (this.#calls.size === 1) this.#watch();
      this.#send({
        id,
        run: { args: [...args, "--non-interactive", "--color", "never"], backendUrl, savesOnce, events },
      });
    });
  }

  allow(ms: number): void {
    this.#send({ ttlMs: Math.max(1, Math.ceil(ms)) });
  }

  kill(): void {
    this.#isKilled = true;
    signalGroup(this.pid, "SIGKILL");
  }

  /** Closes its input, upon which it ends. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    this.#child.stdin.end();
    const kill = setTimeout(() => this.kill(), 1_000);
    await this.#ended;
    clearTimeout(kill);
  }

  #send(message: object): void {
    if (!this.#hasEnded) this.#child.stdin.write(`${JSON.stringify(message)}\n`);
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
      this.kill();
    } else if ("exit" in answer) {
      const { code, stdout, stderr, error } = answer.exit;
      this.#calls.get(answer.id)?.end({ exitCode: code, stdout, stderr, ...(error && { error }) });
    }
  };

  /** Asks for a sign of life while there is work. Counts questions, not time: this process may have stood still itself. */
  #watch(): void {
    clearInterval(this.#pings);
    this.#unanswered = 0;
    this.#pings = setInterval(() => {
      if (this.#unanswered++ < PINGS) return this.#send({ ping: 1 });
      this.#options.log.error({ pid: this.pid }, "killing the Pulumi server: it does not answer");
      this.kill();
    }, this.#options.pingMs ?? PING_MS);
  }

  #end(code: number | null, signal: NodeJS.Signals | null, resolve: () => void): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    clearInterval(this.#pings);
    signalGroup(this.pid, "SIGKILL"); // what it may have started
    if (!this.#isStopping && !this.#isKilled && this.#error === undefined) {
      const told = this.#stderr().trim();
      const updates = this.#calls.size;
      this.#options.log.error({ code, signal, updates, stderr: told }, "the Pulumi server has ended unexpectedly");
    }
    for (const call of [...this.#calls.values()]) {
      call.end({ exitCode: -1, stdout: "", stderr: "", signal: signal ?? "SIGKILL" });
    }
    resolve();
  }
}
