import { LRUCache } from "lru-cache";
import type { Logger } from "pino";
import { dataOf, errorOf } from "../../providers/error-data";
import { RetryableError } from "../../providers/errors";
import type { Fence } from "../../providers/fence";
import type { Log } from "../../providers/log";
import { holdDataOf } from "../../providers/observation";
import type { ProviderContext } from "../../providers/provider";
import { currentUnhandled, type UnhandledErrorHandler } from "../automation/unhandled";
import { exponentialBackoff } from "../queue/backoff";
import type { FromPackage, Target, ToPackage } from "./messages";
import { type Ending, PackageRun } from "./run";
import { nodeOptions, type PackageRights } from "./sandbox";

export interface PackageLimits extends PackageRights {
  /** What a function of a kind may take; calls of providers are limited by their update. */
  timeoutMs: number;
  memoryMib: number;
}

export interface RunnerOptions {
  /** As people name it. */
  name: string;
  /** Its module. */
  entry: string;
  environment: NodeJS.ProcessEnv;
  limits: PackageLimits;
  /** The process ends after so long without a call. */
  idleMs: number;
  /** Whether a process that starts would load other files than those that are served, or none. Throws nothing: timers ask. */
  isChanged: () => boolean;
  logger: Logger;
}

export interface CallOptions {
  /** What the call is for, in messages. */
  what: string;
  /** Undefined where the caller's signal alone ends it. */
  limitMs: number | undefined;
  /** Whether the call may simply be made again. */
  isPure: boolean;
  /** Whether it is for the status alone: what an update needs comes first. */
  isReport?: boolean;
  /** Whether it has waited for something else for so long that what ends its process now is another call's. */
  waits?: () => boolean;
  context?: ProviderContext | undefined;
  log?: Log | undefined;
  signal?: AbortSignal | undefined;
  /** Answers what the call asks for. */
  onAsk?: (method: string, given: readonly unknown[]) => unknown;
}

interface Call {
  options: CallOptions;
  unhandled: UnhandledErrorHandler | undefined;
  settle: PromiseWithResolvers<unknown>;
}

/** One process with what is asked of it. */
interface Current {
  run: PackageRun;
  calls: Map<number, Call>;
  /** How many there have been. */
  called: number;
  sessions: Map<Fence, number>;
  /** Whether the operator has ended it, as nothing was asked of it. */
  isStopped: boolean;
}

export class DiedError extends Error {
  /**
   * @param ranOthers whether the process has also run other calls, and one of them may have ended it
   * @param together how many calls it has ended
   * @param suspects how many of them may have ended it, this one included; 0 where another one has, for certain
   */
  constructor(
    readonly ending: Ending,
    readonly ranOthers: boolean,
    readonly together: number,
    readonly suspects: number,
  ) {
    super(ending.message);
  }
}

const RECONSIDER_MS = 500;
/** Of a package whose modules do not load. */
const BACKOFF = { baseMs: 1_000, capMs: 60_000 };
/** What a call that is over has left behind may tell of errors for so long. */
const KEPT_CALLS = 200;

/** The process in which calls of a package run. It starts with the first call, and ends when there has been none for a while. */
export class PackageRunner {
  #current: Current | undefined;
  #lastId = 0;
  #failedLoads = 0;
  #notBefore = 0;
  #loadEnding: Ending | undefined;
  readonly #former = new LRUCache<number, Call>({ max: KEPT_CALLS });
  #idle: NodeJS.Timeout | undefined;
  #allowance: { ms: number; at: number } | undefined;
  #isClosed = false;

  constructor(private readonly options: RunnerOptions) {}

  /** Of the running process, for tests and benches. */
  get pid(): number | undefined {
    return this.#current?.run.pid;
  }

  /** Whether the process has not answered for a while, or does not run. */
  get isSilent(): boolean {
    return this.#current?.run.isSilent !== false;
  }

  /** Sessions of its calls may write for so long from now. */
  allow(ms: number): void {
    this.#allowance = { ms, at: performance.now() };
    this.#current?.run.send({ type: "allow", ms });
  }

  close(): void {
    this.#isClosed = true;
    this.#stop();
  }

  /** Ends the process unless something runs there, so that the next call has one to itself. */
  renew(): void {
    if (this.#current?.calls.size === 0 && !this.options.isChanged()) this.#stop();
  }

  /**
   * Calls a function of the package.
   *
   * @throws what it throws; DiedError; RetryableError `ProgramTimedOut`, or `ProgramFailed` where the package does not load
   */
  async call(target: Target, args: readonly unknown[], options: CallOptions): Promise<unknown> {
    options.signal?.throwIfAborted();
    options.context?.fence.signal.throwIfAborted();
    const { context, limitMs, signal, what } = options;
    const current = this.#started();
    current.called++;
    const id = ++this.#lastId;
    const call: Call = { options, unhandled: currentUnhandled(), settle: Promise.withResolvers() };
    current.calls.set(id, call);
    clearTimeout(this.#idle);
    const session = context && this.#sessionOf(current, context);
    const hold = context?.hold && holdDataOf(context.hold);
    current.run.send({ type: "call", id, target, args: [...args], ...(session && { session }), ...(hold && { hold }) });
    const abort = () => {
      current.run.send({ type: "abort", id, error: dataOf(signal?.reason) });
      if (context === undefined) call.settle.reject(signal?.reason); // a provider is waited for: it may write
    };
    signal?.addEventListener("abort", abort);
    let timer: NodeJS.Timeout | undefined;
    const late = () => {
      // Another call, or the system, keeps the process from this one: the watch of the process finds out.
      if (current.run.isSilent) timer = setTimeout(late, RECONSIDER_MS);
      else
        call.settle.reject(
          new RetryableError(
            "ProgramTimedOut",
            `${what} did not end within ${(limitMs ?? 0) / 1000} s; it runs again later`,
          ),
        );
    };
    if (limitMs !== undefined) timer = setTimeout(late, limitMs);
    try {
      return await call.settle.promise;
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
      current.calls.delete(id);
      this.#former.set(id, call);
      this.#rest(current);
    }
  }

  #started(): Current {
    if (this.#current !== undefined && !this.#current.run.hasEnded) return this.#current;
    if (this.#isClosed) throw new RetryableError("Interrupted", "the operator is stopping");
    const waitMs = this.#notBefore - performance.now();
    if (waitMs > 0 && this.#loadEnding !== undefined) throw this.#loadError(this.#loadEnding);
    const { name, entry, environment, limits, logger, isChanged } = this.options;
    const current: Current = {
      calls: new Map(),
      called: 0,
      sessions: new Map(),
      isStopped: false,
      run: new PackageRun({
        entry,
        environment,
        options: nodeOptions(entry, limits.memoryMib, limits),
        memoryMib: limits.memoryMib + BASE_MIB,
        isChanged,
        receive: (message) => this.#receive(current, message),
        ended: (ending) => this.#ended(current, ending),
      }),
    };
    this.#current = current;
    logger.debug({ package: name, pid: current.run.pid }, "process of a package starts");
    if (this.#allowance !== undefined) {
      const ms = this.#allowance.ms - (performance.now() - this.#allowance.at);
      current.run.send({ type: "allow", ms });
    }
    return current;
  }

  #loadError({ reason, message }: Ending): RetryableError {
    const { name } = this.options;
    return new RetryableError(reason, `the package ${name} does not load: its process ended: ${message}`, {
      dependency: `package ${name}`,
    });
  }

  #receive(current: Current, message: FromPackage): void {
    switch (message.type) {
      case "answer": {
        const call = current.calls.get(message.id);
        if (message.error === undefined) call?.settle.resolve(message.value);
        else call?.settle.reject(errorOf(message.error));
        return;
      }
      case "ask":
        void this.#answerAsk(current, message);
        return;
      case "log": {
        const log = this.#callOf(current, message.call)?.options.log;
        const { level, message: text, fields } = message;
        if (log !== undefined) log[level](text, fields);
        else this.options.logger[level]({ ...fields, package: this.options.name }, text);
        return;
      }
      case "progress":
        current.calls.get(message.call)?.options.context?.progress(message.message);
        return;
      case "unhandled": {
        const error = errorOf(message.error);
        const handle = this.#callOf(current, message.call)?.unhandled;
        if (handle !== undefined) handle(error);
        else
          this.options.logger.error(
            { err: error, package: this.options.name },
            "unhandled error in the code of a kind",
          );
      }
    }
  }

  async #answerAsk(current: Current, { id, call, method, args }: Extract<FromPackage, { type: "ask" }>): Promise<void> {
    let answer: ToPackage;
    try {
      const onAsk = current.calls.get(call)?.options.onAsk;
      if (onAsk === undefined) throw new TypeError(`the call is over, or may not ask for ${method}`);
      answer = { type: "answer", id, value: await onAsk(method, args) };
    } catch (error) {
      answer = { type: "answer", id, error: dataOf(error) };
    }
    current.run.send(answer);
  }

  #callOf(current: Current, id: number | undefined): Call | undefined {
    return id === undefined ? undefined : (current.calls.get(id) ?? this.#former.get(id));
  }

  /** What the calls of one update have in common, told with each of them. */
  #sessionOf(current: Current, { fence, object, snapshot }: ProviderContext) {
    let id = current.sessions.get(fence);
    if (id === undefined) {
      id = ++this.#lastId;
      const opened = id;
      current.sessions.set(fence, opened);
      const end = () => {
        current.sessions.delete(fence);
        current.run.send({ type: "endSession", id: opened, error: dataOf(fence.signal.reason) });
        this.#rest(current);
      };
      fence.signal.addEventListener("abort", end, { once: true });
    }
    return { id, object, remembers: snapshot !== undefined };
  }

  /** Ends the process when nothing has been asked of it for a while. */
  #rest(current: Current): void {
    if (current.calls.size > 0) return;
    if (current.sessions.size > 0 || current !== this.#current) return;
    clearTimeout(this.#idle);
    this.#idle = setTimeout(() => {
      if (this.options.isChanged())
        this.#rest(current); // it alone has the code
      else this.#stop();
    }, this.options.idleMs).unref();
  }

  #stop(): void {
    clearTimeout(this.#idle);
    const current = this.#current;
    this.#current = undefined;
    if (current === undefined) return;
    current.isStopped = true;
    current.run.kill({ reason: "ProgramFailed", message: "the operator has ended it" });
  }

  #ended(current: Current, ending: Ending): void {
    const { name, logger } = this.options;
    const calls = [...current.calls.values()];
    const certain = ending.call === undefined ? undefined : current.calls.get(ending.call);
    if (this.#current === current) this.#current = undefined;
    if (current.isStopped) {
      const error = new RetryableError("Interrupted", "the operator has ended the process of the kind's code");
      for (const { settle } of calls) settle.reject(error);
      return;
    }
    const working = calls.map(({ options }) => options.what);
    logger.warn({ package: name, ...ending, calls: working.slice(0, 20) }, "process of a package ended");
    if (!current.run.isLoaded) {
      this.#loadEnding = ending;
      this.#notBefore = performance.now() + exponentialBackoff(this.#failedLoads++, BACKOFF);
      for (const { settle } of calls) settle.reject(this.#loadError(ending));
      return;
    }
    this.#failedLoads = 0;
    const busy = calls.filter(({ options }) => options.waits?.() !== true).length;
    for (const call of calls) {
      const suspects = call.options.waits?.() === true ? calls.length : busy;
      const died =
        certain === undefined
          ? new DiedError(ending, current.called > 1, calls.length, suspects)
          : new DiedError(ending, false, calls.length, call === certain ? 1 : 0);
      call.settle.reject(died);
    }
  }
}

/** What Node.js takes without any heap. */
const BASE_MIB = 96;
