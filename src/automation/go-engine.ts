import type { EngineEvent } from "@pulumi/pulumi/automation/events";
import type { OutputMap } from "@pulumi/pulumi/automation/stack";
import pLimit, { type LimitFunction } from "p-limit";
import Type from "typebox";
import { Compile } from "typebox/compile";
import { ClassifiedError, errorMessageOf, RetryableError } from "../../providers/errors";
import { checkFence, currentFence } from "../../providers/fence";
import type { ProviderHost } from "../../providers/host/host";
import { withoutPasswords } from "../../providers/passwords";
import type {
  DestroyOptions,
  HistoryEntry,
  OperationOptions,
  OperationSummary,
  PreviewOptions,
  PreviewResult,
  StackEngine,
  UpOptions,
  UpResult,
} from "./engine";
import type { EngineUsage, OnStack } from "./engine-process";
import type { EngineCounts, EngineProcesses } from "./engine-processes";
import { reportOf } from "./event-log";
import { assess, type Outcome } from "./failures";
import { type Ended, runInterruptible } from "./interruption";
import { plannedChanges } from "./planned-changes";
import { type PreparedProgram, type Program, prepareProgram } from "./program";
import { RpcError } from "./rpc";
import { outputsIn, type StackState } from "./stack-state";
import { resourceChangeSchema } from "./update-changes";

export interface GoEngineOptions {
  processes: EngineProcesses;
  host: ProviderHost;
  /** After this long an operation is interrupted. */
  timeoutMs: number;
  /** Previews that run at the same time, of all stacks; 1 by default. */
  previewsAtOnce?: number;
}

type RunOptions = UpOptions & DestroyOptions;
type Method = "up" | "refresh" | "destroy" | "preview" | "previewDestroy";

const state = Type.Unsafe<StackState>({ type: "object", required: ["version", "deployment"] });
const history = Type.Object({
  entries: Type.Union([
    Type.Null(),
    Type.Array(
      Type.Object({
        version: Type.Integer(),
        kind: Type.Unsafe<HistoryEntry["kind"]>({ type: "string" }),
        startTime: Type.Number(),
        endTime: Type.Number(),
        result: Type.Unsafe<HistoryEntry["result"]>({ type: "string" }),
        resourceChanges: Type.Optional(Type.Record(Type.String(), Type.Integer())),
        changes: Type.Optional(Type.Array(resourceChangeSchema)),
      }),
    ),
  ]),
});
/** What the process answers, by request. */
const answers = {
  outcome: Compile(
    Type.Object({
      exists: Type.Boolean(),
      succeeded: Type.Boolean(),
      message: Type.Optional(Type.String()),
      phasesMs: Type.Record(Type.String(), Type.Number()),
    }),
  ),
  state: Compile(state),
  export: Compile(Type.Object({ state: Type.Union([Type.Null(), state]) })),
  history: Compile(history),
  names: Compile(Type.Object({ names: Type.Array(Type.String()) })),
  locks: Compile(Type.Object({ locks: Type.Array(Type.String()) })),
  urns: Compile(Type.Object({ urns: Type.Array(Type.String()) })),
  anything: Compile(Type.Unknown()),
};

/** Pulumi's engine in processes of `tools/engine`, which ask the providers of this one. */
export class GoEngine implements StackEngine {
  readonly #options: GoEngineOptions;
  readonly #previews: LimitFunction;
  /** What interrupts the operation that writes a stack. */
  readonly #writing = new Map<string, AbortController>();

  constructor(options: GoEngineOptions) {
    this.#options = options;
    this.#previews = pLimit(options.previewsAtOnce ?? 1);
  }

  up(stack: string, program: Program, options: UpOptions = {}): Promise<UpResult> {
    return this.#write("up", "update", stack, options, program);
  }

  refresh(stack: string, options: OperationOptions = {}): Promise<UpResult> {
    return this.#write("refresh", "refresh", stack, options);
  }

  destroy(stack: string, options: DestroyOptions = {}): Promise<UpResult> {
    return this.#write("destroy", "destroy", stack, options);
  }

  preview(stack: string, program: Program, options: PreviewOptions = {}): Promise<PreviewResult> {
    return this.#plan("preview", stack, options, program);
  }

  previewDestroy(stack: string, options: PreviewOptions = {}): Promise<PreviewResult> {
    return this.#plan("previewDestroy", stack, options);
  }

  async cancel(stack: string): Promise<void> {
    this.#writing.get(stack)?.abort();
  }

  async history(stack: string, signal?: AbortSignal): Promise<HistoryEntry[] | undefined> {
    const { entries } = await this.#ask(answers.history, "history", { stack }, signal);
    return entries?.map((entry) => ({
      ...entry,
      startTime: new Date(entry.startTime * 1000),
      endTime: new Date(entry.endTime * 1000),
    }));
  }

  async outputs(stack: string, signal?: AbortSignal): Promise<OutputMap> {
    return outputsIn(await this.exportStack(stack, signal));
  }

  async exportStack(stack: string, signal?: AbortSignal): Promise<StackState | undefined> {
    return (await this.#ask(answers.export, "export", { stack }, signal)).state ?? undefined;
  }

  /** Reads every stack's state. On `postgres://`, all are of the same moment; elsewhere, each is of its own. */
  async exportAll(onState: (name: string, state: StackState) => Promise<void>, signal?: AbortSignal): Promise<void> {
    await this.#ask(answers.anything, "exportAll", {}, signal, async (name, state) => {
      if (!answers.state.Check(state)) throw new RetryableError("Unreadable", `the stack ${name} has no state`);
      await onState(name, state);
    });
  }

  async importStack(stack: string, deployment: StackState, signal?: AbortSignal): Promise<void> {
    await this.#ask(answers.anything, "import", { stack, deployment }, signal);
  }

  async listStacks(signal?: AbortSignal): Promise<{ name: string }[]> {
    return (await this.#ask(answers.names, "names", {}, signal)).names.map((name) => ({ name }));
  }

  async removeStack(stack: string, signal?: AbortSignal): Promise<void> {
    checkFence();
    await this.#ask(answers.anything, "remove", { stack }, signal);
  }

  /** Removes all locks of a stack. @returns who held them */
  async unlock(stack: string, signal?: AbortSignal): Promise<string[]> {
    return (await this.#ask(answers.locks, "unlock", { stack }, signal)).locks;
  }

  /** Takes the protection from a stack's resources, or from one. @returns the URNs of those that were protected */
  async unprotect(stack: string, urn: string | undefined, signal?: AbortSignal): Promise<string[]> {
    return (await this.#ask(answers.urns, "unprotect", { stack, urn }, signal)).urns;
  }

  get counts(): EngineCounts {
    return this.#options.processes.counts;
  }

  usage(): Promise<EngineUsage> {
    return this.#options.processes.usage();
  }

  allow(ms: number): void {
    this.#options.processes.allow(ms);
  }

  close(): Promise<void> {
    return this.#options.processes.close();
  }

  async #write(
    method: Method,
    kind: OperationSummary["kind"],
    stack: string,
    options: RunOptions,
    program?: Program,
  ): Promise<UpResult> {
    if (this.#writing.has(stack)) {
      throw new RetryableError("Locked", `the stack ${stack} is being worked on by this process`);
    }
    const cancelled = new AbortController();
    this.#writing.set(stack, cancelled);
    const startTime = new Date();
    try {
      const { ended, events, assessment } = await this.#run(method, stack, options, cancelled.signal, program);
      checkFence(); // whatever ended it, it is another's stack now
      const { changes: resourceChanges, resources, deleted } = reportOf(events);
      const { succeeded, failures, restDone } = assessment;
      const result = succeeded ? "succeeded" : "failed";
      return {
        summary: { kind, startTime, endTime: new Date(), result, resourceChanges },
        interrupted: !succeeded && ended.interrupted === "aborted",
        failures,
        restDone,
        resources,
        deleted,
      };
    } finally {
      this.#writing.delete(stack);
    }
  }

  async #plan(method: Method, stack: string, options: PreviewOptions, program?: Program): Promise<PreviewResult> {
    const { ended, events, outcome, assessment } = await this.#previews(() =>
      this.#run(method, stack, options, undefined, program),
    );
    if (ended.interrupted === "aborted") throw new RetryableError("Interrupted", "the preview was interrupted");
    return { exists: outcome?.exists ?? false, changes: plannedChanges(events), failures: assessment.failures };
  }

  async #run(
    method: Method,
    stack: string,
    { refresh, savesOnce, signal, ...options }: RunOptions,
    cancelled: AbortSignal | undefined,
    program?: Program,
  ) {
    const { processes, host, timeoutMs } = this.#options;
    const events: EngineEvent[] = [];
    const session = host.openSession({ ...options, fence: currentFence() });
    let prepared: PreparedProgram | undefined;
    let programError: unknown;
    let ended: Ended = {};
    try {
      if (program !== undefined) prepared = await prepareProgram(program, options);
      const params = { stack, refresh, savesOnce, ...(prepared && { program: prepared.parameter }) };
      const listener = { session, event: (event: EngineEvent) => void events.push(event) };
      ended = await processes.use(
        (process) =>
          runInterruptible({ timeoutMs, signals: [signal, cancelled] }, () =>
            process.operate(method, params, listener),
          ),
        { operates: true },
      );
    } catch (error) {
      if (program === undefined || prepared !== undefined) throw error;
      programError = error;
    } finally {
      session.close();
      prepared?.close();
    }
    const outcome = outcomeOf(ended);
    processes.count(outcome?.phasesMs);
    programError ??= prepared?.error();
    const assessment = assess(ended, outcome, reportOf(events), session.failures, programError, timeoutMs);
    return { ended, events, outcome, assessment };
  }

  async #ask<T>(
    schema: { Check(value: unknown): value is T },
    method: string,
    params: object,
    signal: AbortSignal | undefined,
    onStack?: OnStack,
  ): Promise<T> {
    signal?.throwIfAborted();
    try {
      const answer = await this.#options.processes.use((process) => process.ask(method, params, onStack));
      signal?.throwIfAborted();
      if (schema.Check(answer)) return answer;
      throw new Error(`the engine's answer to ${method} has another form`);
    } catch (error) {
      if (error instanceof ClassifiedError || signal?.aborted) throw error;
      const isLocked = error instanceof RpcError && error.kind === "locked";
      throw new RetryableError(isLocked ? "Locked" : "Unreadable", withoutPasswords(errorMessageOf(error)));
    }
  }
}

/** @throws RetryableError `Locked` */
function outcomeOf({ result, error }: Ended): Outcome | undefined {
  if (answers.outcome.Check(result)) return result;
  if (!(error instanceof RpcError)) return undefined;
  if (error.kind === "locked") throw new RetryableError("Locked", error.message);
  return { exists: false, succeeded: false, message: withoutPasswords(error.message), phasesMs: {} };
}
