import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import type { EngineEvent } from "@pulumi/pulumi/automation/events";
import { RetryableError, TerminalError } from "../../providers/errors";
import type { ProviderSession } from "../../providers/host/session";
import { withoutPasswords } from "../../providers/passwords";
import { readLines } from "../text/lines";
import { ENGINE_VERSION } from "../toolchain/tools";
import { containerMemory, describeEnd, notStarted } from "./engine-end";
import { collect, killGroup, killSession, type RunningCommand } from "./interruption";
import { Connection, type EngineUsage, messages, PROTOCOL, RpcError, wholeMs } from "./rpc";

export interface EngineProcessOptions {
  file: string;
  args: readonly string[];
  environment: NodeJS.ProcessEnv;
  log: { warn(fields: object, message: string): void; error(fields: object, message: string): void };
  /** A process that has work and says nothing for four times this long is taken for frozen, and killed. */
  pingMs?: number | undefined;
  /** Answers where plugins run. */
  pluginHost?: (() => Promise<object>) | undefined;
  /** Told when the process has had nothing to do for a while; only a host of plugins says so. */
  onIdle?: (() => void) | undefined;
}

/** Receives a requested stack; the next stack follows when the promise resolves. */
export type OnStack = (name: string, state: unknown) => Promise<void>;

/** Who is told what an operation asks and says while it runs. */
interface OperationListener {
  session: ProviderSession;
  event(event: EngineEvent): void;
  /** The outputs of the stack itself. */
  outputs(): Promise<object>;
}

const PING_MS = 10_000;
const PINGS = 4;
/** Of what the process says when it fails, the end is logged. */
const KEPT_STDERR = 4_000;
/** How long a process has to end after its input was closed. */
const END_MS = 1_000;

/** The process ended before it answered. The message says why and, where something can be done, what. */
export class EngineGoneError extends Error {}

/** One process of `tools/engine`. */
export class EngineProcess {
  readonly #greeting = Promise.withResolvers<void>();
  /** Resolves when it has greeted. @throws TerminalError `Misconfigured`, RetryableError `NoEngine` */
  readonly ready = this.#greeting.promise;
  readonly ended: Promise<void>;
  operations = 0;
  /** Whether it takes no more requests. */
  isOver = false;
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #connection: Connection;
  readonly #listeners = new Map<number, OperationListener>();
  readonly #onStack = new Map<number, OnStack>();
  readonly #stderr: () => string;
  /** Why this process has killed it. */
  #killedAs: string | undefined;
  readonly #killsBefore = containerMemory().kills;
  #working = 0;
  #timer: NodeJS.Timeout | undefined;
  #unanswered = 0;

  /**
   * @param onEnd told when it ends: `crashed` if nothing had asked it to
   * @throws RetryableError `NoEngine` when the system refuses to start it
   */
  constructor(
    private readonly options: EngineProcessOptions,
    onEnd: (how: { crashed: boolean }) => void,
  ) {
    this.ready.catch(() => undefined); // each caller gets the error
    const child = start(options);
    this.#child = child;
    this.#stderr = collect(child.stderr, KEPT_STDERR);
    this.#connection = new Connection((line) => void (!this.isOver && child.stdin.write(line)), {
      request: (method, params) => this.#answer(method, params),
      notification: this.#onNotification,
    });
    this.ended = new Promise((resolve) => {
      child.once("close", (code, signal) => {
        const crashed = !this.isOver || this.#killedAs !== undefined;
        this.#close(code, signal);
        onEnd({ crashed });
        resolve();
      });
    });
    child.on("error", (error) => {
      if (child.pid === undefined) this.#greeting.reject(notStarted(error));
    });
    if (child.pid === undefined) {
      this.isOver = true; // its end follows
      return;
    }
    child.stdin.on("error", () => undefined); // it has ended, as the event above says
    readLines(child.stdout, (line) => {
      this.#unanswered = 0;
      if (!this.#connection.receive(line)) this.#refuse(line);
    });
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  get isIdle(): boolean {
    return this.#working === 0;
  }

  /** Begins an operation on a stack. Its `ended` rejects with RpcError or EngineGoneError. */
  operate(method: string, params: object, listener: OperationListener): RunningCommand {
    this.operations++;
    const { id, result } = this.#call(method, params);
    this.#listeners.set(id, listener);
    const ended = result.finally(() => this.#listeners.delete(id));
    return {
      ended,
      interrupt: () => this.#connection.notify("cancel", { id }),
      terminate: () => this.#connection.notify("cancel", { id, hard: true }),
      kill: () => this.#kill("an update did not end when it was told to"),
    };
  }

  /** Asks something about stacks. @throws RpcError, EngineGoneError */
  ask(method: string, params: object, onStack?: OnStack): Promise<unknown> {
    const { id, result } = this.#call(method, params);
    if (onStack !== undefined) this.#onStack.set(id, onStack);
    return result.finally(() => this.#onStack.delete(id));
  }

  async usage(): Promise<EngineUsage> {
    const usage = await this.#call("ping", {}).result;
    if (!messages.usage.Check(usage)) throw new RpcError("no usage", undefined);
    return usage;
  }

  allow(ms: number): void {
    this.#connection.notify("allow", { ms: wholeMs(ms) });
  }

  /** Closes the input of the process, which then ends. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    if (!this.isOver) this.#child.stdin.end();
    this.isOver = true;
    const kill = setTimeout(() => killGroup(this.pid), END_MS);
    await this.ended;
    clearTimeout(kill);
  }

  #kill(as: string): void {
    this.isOver = true;
    this.#killedAs = as;
    killGroup(this.pid);
  }

  #call(method: string, params: object): { id: number; result: Promise<unknown> } {
    if (++this.#working === 1) this.#watch();
    const { id, result } = this.#connection.call(method, params);
    const settled = result.finally(() => {
      if (--this.#working === 0) clearInterval(this.#timer);
    });
    return { id, result: settled };
  }

  async #answer(method: string, params: unknown): Promise<object> {
    if (method === "stack" && messages.stack.Check(params)) {
      await this.#onStack.get(params.id)?.(params.name, params.state);
      return {};
    }
    if (method === "plugins" && this.options.pluginHost !== undefined) return this.options.pluginHost();
    if (method === "outputs" && messages.operation.Check(params)) {
      return { outputs: await this.#listenerOf(params.id).outputs() };
    }
    if (!messages.providerCall.Check(params)) throw new Error("a provider's call of another form");
    const listener = this.#listenerOf(params.id);
    return listener.session.call(method, params.request);
  }

  #listenerOf(id: number): OperationListener {
    const listener = this.#listeners.get(id);
    if (listener === undefined) throw new Error("the update of this stack has ended");
    return listener;
  }

  readonly #onNotification = (method: string, params: unknown) => {
    if (method === "event" && messages.event.Check(params)) this.#listeners.get(params.id)?.event(params.event);
    else if (method === "log" && messages.log.Check(params)) this.options.log.warn(params.facts, params.message);
    else if (method === "idle") this.options.onIdle?.();
    else if (method === "hello" && messages.hello.Check(params)) this.#greet(params);
    else this.#refuse(`${method} ${JSON.stringify(params)}`);
  };

  #greet({ version, protocol }: { version: string; protocol: number }): void {
    // The build for clouds says so behind its version.
    if (protocol === PROTOCOL && version.replace(/\.clouds$/, "") === ENGINE_VERSION) {
      this.#greeting.resolve();
      return;
    }
    const message =
      `${this.options.file} is Pulumi's engine ${version} with protocol ${protocol}; this Kindstack needs ${ENGINE_VERSION} with protocol ` +
      `${PROTOCOL}: unset KINDSTACK_ENGINE, or name the engine of this version`;
    this.isOver = true;
    this.#greeting.reject(new TerminalError("Misconfigured", message));
    this.#child.stdin.end();
  }

  #refuse(line: string): void {
    if (this.isOver) return;
    this.options.log.error({ line: line.slice(0, 200) }, "killing Pulumi's engine: invalid output");
    this.#kill("its output is invalid");
  }

  /** Asks for a sign of life while there is work. Counts questions, not time: this process may have stood still itself. */
  #watch(): void {
    clearInterval(this.#timer);
    this.#unanswered = 0;
    this.#timer = setInterval(() => {
      if (this.#unanswered++ < PINGS) {
        this.#connection.call("ping", {}).result.catch(() => undefined);
        return;
      }
      this.options.log.error({ pid: this.pid }, "killing Pulumi's engine: it does not answer");
      this.#kill("it did not answer");
    }, this.options.pingMs ?? PING_MS);
  }

  #close(code: number | null, signal: NodeJS.Signals | null): void {
    clearInterval(this.#timer);
    const stderr = withoutPasswords(this.#stderr().trim()); // it quotes the backend's URL
    if (!this.isOver) {
      const facts = { code, signal, operations: this.#working, stderr };
      this.options.log.error(facts, "Pulumi's engine has ended unexpectedly");
    }
    this.isOver = true;
    killSession(this.pid); // what it may have started: plugins have groups of their own
    const end = describeEnd(code, signal, this.#killedAs, this.#killsBefore);
    const atStart = `Pulumi's engine did not start: ${stderr || `exit code ${code}`}`;
    this.#greeting.reject(new RetryableError("NoEngine", signal === null ? atStart : end));
    this.#connection.end(new EngineGoneError(end));
  }
}

function start({ file, args, environment }: EngineProcessOptions) {
  try {
    return spawn(file, args, {
      env: environment,
      detached: true, // a Ctrl-C meant for this process does not reach it
    });
  } catch (error) {
    throw notStarted(error); // of most failures the process tells by an event
  }
}
