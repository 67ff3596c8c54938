import { failureOf } from "../../providers/errors";
import { ENDINGS } from "../../providers/reasons";
import { CodeEndedError, type EndingReason } from "../../stacks/contract/code-ended";
import { Budget } from "../queue/budget";
import type { Target } from "./messages";
import type { Ending } from "./run";
import { type CallOptions, DiedError, PackageRunner, type RunnerOptions } from "./runner";
import { type Subject, Suspicions, subjectOf } from "./suspicion";

/** CPU time of processes that have ended, in ms: what has ended one before waits until they take 1 % of a core. */
const CPU_BUDGET = [5_000, 10] as const;
/** Where it is not known. */
const ASSUMED_CPU_MS = 500;
/** Ends of the process that calls share: each function that ends one runs apart from then on. */
const TOGETHER_BUDGET = [30, 0.2] as const;
const APART_IDLE_MS = 5_000;
const BUSY_MS = 1_000;
const TURN_MS = 5_000;
const MAX_TRIES = 3;

/**
 * The code of a package's kinds, in a process of its own. When that ends, what ran may have ended it, and runs in a second
 * process, one call after another, until it is known: so no object has another's failure. What ends its process again and
 * again is called later each time, and takes nothing from others.
 */
export class PackageProcess {
  readonly #together: PackageRunner;
  readonly #apart: PackageRunner;
  readonly #suspicions = new Suspicions();
  readonly #turns = new Turns();
  readonly #cpuBudget = new Budget(...CPU_BUDGET);
  readonly #togetherBudget = new Budget(...TOGETHER_BUDGET);

  constructor(private readonly options: RunnerOptions) {
    this.#together = new PackageRunner(options);
    this.#apart = new PackageRunner({ ...options, idleMs: Math.min(options.idleMs, APART_IDLE_MS) });
  }

  /** Of the running processes, for tests and benches. */
  get pids(): number[] {
    return [this.#together.pid ?? [], this.#apart.pid ?? []].flat();
  }

  /** Sessions of its calls may write for so long from now. */
  allow(ms: number): void {
    this.#together.allow(ms);
    this.#apart.allow(ms);
  }

  close(): void {
    this.#together.close();
    this.#apart.close();
  }

  /**
   * Calls a function of the package.
   *
   * @throws what it throws; CodeEndedError, with the reason `Interrupted` where something else may have ended the process
   */
  async call(target: Target, args: readonly unknown[], options: CallOptions): Promise<unknown> {
    let subject = this.#suspicions.isEmpty ? undefined : subjectOf(target, args, options);
    const suspicion = subject && this.#suspicions.get(subject.key);
    if (suspicion?.error !== undefined && performance.now() < suspicion.error.notBefore) throw suspicion.error;
    if (subject !== undefined && suspicion?.apart) return this.#callApart(target, args, options, subject);
    const waitMs = this.#togetherBudget.waitMs;
    if (waitMs > 0) throw this.#overspent(waitMs);
    try {
      const answer = await this.#together.call(target, args, options);
      if (suspicion !== undefined && subject !== undefined) this.#suspicions.acquit(subject.key);
      return answer;
    } catch (error) {
      subject ??= subjectOf(target, args, options);
      if (!(error instanceof DiedError)) throw this.#judged(error, subject, options, { apart: false });
      this.#togetherBudget.spend(1 / error.together);
      this.#charge(error);
      if (error.suspects === 1 && !error.ranOthers) throw this.#judged(error, subject, options);
      if (error.suspects > 0) this.#suspicions.suspect(subject.key);
      if (!options.isPure) throw interrupted(error.ending, options);
      return this.call(target, args, options); // apart from others, where it may have ended the process
    }
  }

  async #callApart(target: Target, args: readonly unknown[], options: CallOptions, subject: Subject): Promise<unknown> {
    const { object, key } = subject;
    const before = this.#suspicions.get(key)?.error;
    if (before !== undefined) {
      const waitMs = this.#turns.isTaken(object) ? BUSY_MS : this.#cpuBudget.waitMs;
      if (waitMs > 0) throw unanswered({ reason: before.reason as EndingReason, message: before.message }, waitMs);
    }
    using turn = await this.#turns.take({ object, isShared: !options.isPure }, !options.isReport);
    // What this process has done for others must not be laid to the charge of what cannot simply be called again.
    if (turn.isFirst && (!options.isPure || before !== undefined)) this.#apart.renew();
    let waits = false;
    const limited = { ...options, waits: () => waits };
    using _ = this.#limited(() => {
      waits = true;
      turn.end();
    });
    for (let tries = 1; ; tries++) {
      try {
        const answer = await this.#apart.call(target, args, limited);
        this.#suspicions.acquit(key);
        return answer;
      } catch (error) {
        if (!(error instanceof DiedError)) throw this.#judged(error, subject, options);
        this.#charge(error);
        const isCertain = error.suspects === 1 && !(error.ranOthers && options.isPure);
        if (isCertain) throw this.#judged(error, subject, options);
        if (!options.isPure || waits || tries === MAX_TRIES) throw interrupted(error.ending, options);
      }
    }
  }

  /** Each call that a process has ended with takes its share. */
  #charge({ ending: { cpuMs = ASSUMED_CPU_MS }, together }: DiedError): void {
    this.#cpuBudget.spend(cpuMs / together);
  }

  /** What waits for something else keeps no other waiting. What keeps its process from answering may be about to end it. */
  #limited(end: () => void): Disposable {
    const timer = setInterval(() => {
      if (!this.#apart.isSilent) end();
    }, TURN_MS).unref();
    return { [Symbol.dispose]: () => clearInterval(timer) };
  }

  /** What an error of a call comes to. */
  #judged(error: unknown, { key }: Subject, { what }: CallOptions, { apart = true } = {}): unknown {
    if (error instanceof DiedError) {
      const { reason, message } = error.ending;
      const text = `${what}: the process of the kind's code ended: ${message}`;
      return this.#suspicions.convict(key, { reason, message: text }, { apart });
    }
    const { reason, message, dependency } = failureOf(error);
    if (ENDINGS.includes(reason)) {
      const ending = { reason: reason as EndingReason, message };
      if (dependency !== undefined) return unanswered(ending, BUSY_MS, dependency);
      return this.#suspicions.convict(key, ending, { apart: false });
    }
    if (apart) this.#suspicions.acquit(key);
    return error;
  }

  #overspent(waitMs: number): CodeEndedError {
    const { name } = this.options;
    const message = `the process of the package ${name} has ended too often; it starts again in ${Math.ceil(waitMs / 1000)} s`;
    return unanswered({ reason: "ProgramFailed", message }, waitMs, `package ${name}`);
  }
}

/** Of what is not called again here: the process may have ended for another call. */
function interrupted({ message: cause }: Ending, { what }: CallOptions): CodeEndedError {
  const message = `${what} was cut off, as the process of the kind's code ended (${cause}); it is called again by itself`;
  return unanswered({ reason: "Interrupted", message }, BUSY_MS);
}

function unanswered({ reason, message }: Ending, waitMs: number, dependency?: string): CodeEndedError {
  return new CodeEndedError(reason, message, performance.now() + waitMs, { dependency });
}

interface Turn {
  object: string;
  /** Whether other calls for the object may run meanwhile, which an update waits for before it ends. */
  isShared: boolean;
}

interface Waiting {
  turn: Turn;
  isUrgent: boolean;
  start: () => void;
}

/** Lets one call after another have something for itself, or those of one object's update. */
export class Turns {
  #holder: Turn | undefined;
  #held = 0;
  #waiting: Waiting[] = [];

  /** Whether a call for an object would have to wait. */
  isTaken(object: string): boolean {
    return this.#holder !== undefined && !(this.#holder.isShared && this.#holder.object === object);
  }

  /** @param isUrgent before others that are not. @returns whether it is the first of its turn */
  async take(turn: Turn, isUrgent: boolean): Promise<{ isFirst: boolean; end(): void } & Disposable> {
    if (this.isTaken(turn.object)) {
      await new Promise<void>((start) => {
        const index = isUrgent ? this.#waiting.findIndex((other) => !other.isUrgent) : -1;
        this.#waiting.splice(index === -1 ? this.#waiting.length : index, 0, { turn, isUrgent, start });
      });
    } else {
      this.#holder ??= turn;
    }
    this.#held++;
    let isOver = false;
    const end = () => {
      if (!isOver) this.#release();
      isOver = true;
    };
    return { isFirst: this.#held === 1, end, [Symbol.dispose]: end };
  }

  #release(): void {
    if (--this.#held > 0) return;
    const [next, ...others] = this.#waiting;
    this.#holder = next?.turn;
    this.#waiting = others.filter(({ turn }) => this.isTaken(turn.object));
    next?.start();
    for (const other of others) if (!this.#waiting.includes(other)) other.start();
  }
}
