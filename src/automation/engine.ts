import type { EngineEvent } from "@pulumi/pulumi/automation/events";
import Type from "typebox";
import { Compile } from "typebox/compile";
import { RetryableError } from "../../providers/errors";
import { checkFence, currentFence } from "../../providers/fence";
import type { ProviderHost } from "../../providers/host/host";
import type { SessionOptions } from "../../providers/host/session";
import type { EngineProcesses } from "./engine-processes";
import { type EngineReport, reportOf, type StackResource } from "./event-log";
import { assess, type Outcome, type UpdateFailure, withoutPasswords } from "./failures";
import { type Ended, runInterruptible } from "./interruption";
import { type PreparedProgram, type Program, type ProgramOptions, prepareProgram } from "./program";
import { RpcError } from "./rpc";
import { urnsIn } from "./stack-state";
import { StackStates } from "./stack-states";

export interface UpdateResult {
  operation: "up" | "destroy";
  outcome: "succeeded" | "failed" | "interrupted";
  /** Resources by what was done to them; empty when nothing had to be done. */
  changes: EngineReport["changes"];
  /** The resources that took part and still exist. */
  resources: StackResource[];
  /** Those that it deleted, as they last were. */
  deleted: StackResource[];
  /** Why it did not succeed; empty when it did. */
  failures: UpdateFailure[];
  /** Whether all the rest was done: it succeeded, or what failed was one resource's operation or another's and no more. */
  restDone?: boolean;
  durationMs: number;
}

export interface UpdateOptions extends ProgramOptions {
  /** Compare the state with the real world first, so that drift is repaired. */
  refresh?: boolean;
  signal?: AbortSignal | undefined;
  /**
   * Save the state at the end, not after each step. A checkpoint is the whole state: with many steps, or in a large stack,
   * that is most of an update's time. What a killed update made is then in no state; see {@link findsWhatWasCutOff}.
   */
  savesOnce?: boolean;
}

type DestroyOptions = UpdateOptions & Pick<SessionOptions, "release">;

export interface StackEngineOptions {
  engine: EngineProcesses;
  host: ProviderHost;
  /** After this long an operation is interrupted. */
  timeoutMs: number;
}

const outcomeSchema = Compile(
  Type.Object({
    exists: Type.Boolean(),
    succeeded: Type.Boolean(),
    message: Type.Optional(Type.String()),
    phasesMs: Type.Record(Type.String(), Type.Number()),
  }),
);

type Method = "up" | "destroy" | "preview" | "previewDestroy";

interface OperationOptions extends SessionOptions {
  signal?: AbortSignal | undefined;
}

/** Runs operations on stacks, for inline programs, with the providers of this process. */
export class StackEngine {
  readonly states: StackStates;
  readonly #options: StackEngineOptions;
  /** Stacks that are being written. */
  readonly #working = new Set<string>();

  constructor(options: StackEngineOptions) {
    this.#options = options;
    this.states = new StackStates(options.engine);
  }

  /** Creates or updates what `program` registers; makes the stack when there is none. */
  async up(stack: string, program: Program, options: UpdateOptions = {}): Promise<UpdateResult> {
    return this.#update("up", stack, options, program);
  }

  /**
   * Deletes everything in a stack and then the stack with its history. A stack that does not exist is a success.
   *
   * @param options with `release`, the stack's resources are kept, unmanaged
   */
  async destroy(stack: string, options: DestroyOptions = {}): Promise<UpdateResult> {
    return this.#update("destroy", stack, options);
  }

  /**
   * The URNs in a stack's state, parents first; `undefined` when there is no such stack.
   *
   * @throws RetryableError `Unreadable`
   */
  async recorded(stack: string, signal?: AbortSignal): Promise<string[] | undefined> {
    const state = await this.states.read(stack, signal);
    return state && urnsIn(state);
  }

  /**
   * Removes a stack's state and history, and leaves what it made as it is. A stack that does not exist is a success.
   *
   * @throws RetryableError when the backend cannot be reached, or the fence has come down
   */
  async forget(stack: string, _signal?: AbortSignal): Promise<void> {
    checkFence();
    await this.states.remove(stack);
  }

  async #update(
    operation: UpdateResult["operation"],
    stack: string,
    options: DestroyOptions,
    program?: Program,
  ): Promise<UpdateResult> {
    const { savesOnce, refresh } = options;
    if (this.#working.has(stack)) {
      throw new RetryableError("Locked", `the stack ${stack} is being worked on by this process`);
    }
    this.#working.add(stack);
    const started = performance.now();
    try {
      const { ended, events, assessment } = await this.operate(
        operation,
        stack,
        { savesOnce, refresh },
        { ...options, fence: currentFence() },
        program,
      );
      checkFence(); // whatever ended it, it is another's stack now
      const { changes, resources, deleted } = reportOf(events);
      const { succeeded, failures, restDone } = assessment;
      const outcome = succeeded ? "succeeded" : ended.interrupted === "aborted" ? "interrupted" : "failed";
      const durationMs = performance.now() - started;
      return { operation, outcome, changes, resources, deleted, failures, restDone, durationMs };
    } finally {
      this.#working.delete(stack);
    }
  }

  /**
   * Runs one operation of the engine's.
   *
   * @throws RetryableError `Locked`, `NoPulumi`
   */
  async operate(
    method: Method,
    stack: string,
    parameters: object,
    options: OperationOptions & ProgramOptions,
    program?: Program,
  ) {
    const { engine, host, timeoutMs } = this.#options;
    const events: EngineEvent[] = [];
    const session = host.openSession(options);
    const limits = { timeoutMs, signal: options.signal };
    let prepared: PreparedProgram | undefined;
    let programError: unknown;
    let ended: Ended = {};
    try {
      if (program !== undefined) prepared = await prepareProgram(program, options);
      const params = { stack, ...parameters, ...(prepared && { program: prepared.parameter }) };
      const listener = { session, event: (event: EngineEvent) => void events.push(event) };
      ended = await engine.use((process) => runInterruptible(limits, () => process.operate(method, params, listener)), {
        operates: true,
      });
    } catch (error) {
      if (program === undefined || prepared !== undefined) throw error;
      programError = error;
    } finally {
      session.close();
      prepared?.close();
    }
    const outcome = outcomeOf(ended);
    engine.count(outcome?.phasesMs);
    const report = reportOf(events);
    programError ??= prepared?.error();
    const assessment = assess(ended, outcome, report, session.failures, programError, timeoutMs);
    return { ended, events, outcome, assessment };
  }
}

/** @throws RetryableError `Locked` */
function outcomeOf({ result, error }: Ended): Outcome | undefined {
  if (outcomeSchema.Check(result)) return result;
  if (!(error instanceof RpcError)) return undefined;
  if (error.kind === "locked") throw new RetryableError("Locked", error.message);
  return { exists: false, succeeded: false, message: withoutPasswords(error.message), phasesMs: {} };
}
