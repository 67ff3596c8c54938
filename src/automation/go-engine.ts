import type { EngineEvent } from "@pulumi/pulumi/automation/events";
import Type from "typebox";
import { Compile } from "typebox/compile";
import { asError, ClassifiedError, errorMessageOf, RetryableError } from "../../providers/errors";
import { guardOf } from "../../providers/index";
import { escapeReserved } from "../../providers/literal";
import { withoutPasswords } from "../../providers/passwords";
import type { DestroyOptions, HistoryEntry, StackEngine, UpResult } from "./engine";
import type { OnStack } from "./engine-process";
import type { EngineProcesses } from "./engine-processes";
import { type EngineOutcome, outcomeSchema, type Ran, reportOf } from "./event-log";
import { type Ended, runInterruptible } from "./interruption";
import { type Operation, Operations, type OperationsOptions } from "./operations";
import { type BackendOwner, ownerSchema } from "./owner-file";
import { resourceChangeSchema } from "./planned-changes";
import { type PreparedProgram, prepareProgram } from "./program";
import { RpcError } from "./rpc";
import { type StackState, stackStateSchema } from "./stack-state";

export interface GoEngineOptions extends OperationsOptions {
  processes: EngineProcesses;
}

const history = Type.Object({
  entries: Type.Union([
    Type.Null(),
    Type.Array(
      Type.Object({
        version: Type.Integer(),
        kind: Type.Unsafe<HistoryEntry["kind"]>({ type: "string" }),
        message: Type.String(),
        startTime: Type.Number(),
        endTime: Type.Number(),
        result: Type.Unsafe<HistoryEntry["result"]>({ type: "string" }),
        resourceChanges: Type.Optional(Type.Record(Type.String(), Type.Integer())),
        changes: Type.Optional(Type.Array(resourceChangeSchema)),
        unfinished: Type.Optional(Type.Array(resourceChangeSchema)),
        waiting: Type.Optional(Type.Boolean()),
      }),
    ),
  ]),
});
const answers = {
  outcome: Compile(outcomeSchema),
  state: Compile(stackStateSchema),
  export: Compile(Type.Object({ state: Type.Union([Type.Null(), stackStateSchema]) })),
  history: Compile(history),
  names: Compile(Type.Object({ names: Type.Array(Type.String()) })),
  locks: Compile(Type.Object({ locks: Type.Union([Type.Array(Type.String()), Type.Null()]) })),
  urns: Compile(Type.Object({ urns: Type.Array(Type.String()) })),
  owner: Compile(Type.Object({ owner: Type.Union([Type.Null(), ownerSchema]) })),
  claimed: Compile(Type.Object({ owner: ownerSchema })),
  anything: Compile(Type.Unknown()),
};

/** Pulumi's engine in processes of `tools/engine`, which ask the providers of this one. */
export class GoEngine extends Operations implements StackEngine {
  readonly processes: EngineProcesses;

  constructor({ processes, ...options }: GoEngineOptions) {
    super(options);
    this.processes = processes;
  }

  override async destroy(stack: string, options: DestroyOptions = {}): Promise<UpResult> {
    const { release, signal, owner, context } = options;
    // Protection forbids deletions only: released resources stay, so they are unprotected first.
    const state = release ? await this.exportStack(stack, signal) : undefined;
    if (state?.deployment.resources?.some(({ protect }) => protect)) {
      context?.fence.check();
      await this.unprotect(stack, undefined, signal, owner);
    }
    return super.destroy(stack, options);
  }

  async history(stack: string, signal?: AbortSignal): Promise<HistoryEntry[] | undefined> {
    const { entries } = await this.#ask(answers.history, "history", { stack }, signal);
    return entries?.map(({ waiting, ...entry }) => ({
      ...entry,
      ...(waiting && { result: "waiting" }),
      startTime: new Date(entry.startTime * 1000),
      endTime: new Date(entry.endTime * 1000),
    }));
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

  /** Replaces a stack's state with one of `pulumi stack export`; makes the stack when there is none. */
  async importStack(stack: string, state: StackState, signal?: AbortSignal): Promise<void> {
    await this.#ask(answers.anything, "import", { stack, state }, signal);
  }

  async forgetDestroyed(stacks: readonly string[]): Promise<void> {
    await this.#ask(answers.anything, "forget", { stacks }, undefined);
  }

  async listStacks(signal?: AbortSignal): Promise<{ name: string }[]> {
    return (await this.#ask(answers.names, "names", {}, signal)).names.map((name) => ({ name }));
  }

  async backendOwner(signal?: AbortSignal): Promise<BackendOwner | undefined> {
    return (await this.#ask(answers.owner, "owner", {}, signal)).owner ?? undefined;
  }

  async claimBackend(owner: BackendOwner, replaces?: string, signal?: AbortSignal): Promise<BackendOwner> {
    return (await this.#ask(answers.claimed, "claim", { record: owner, replaces }, signal)).owner;
  }

  /** Removes all locks of a stack. @returns who held them; `undefined` for a stack that does not exist */
  async unlock(stack: string, signal?: AbortSignal): Promise<string[] | undefined> {
    return (await this.#ask(answers.locks, "unlock", { stack }, signal)).locks ?? undefined;
  }

  /** Takes the protection from a stack's resources, or from one. @returns the URNs of those that were protected */
  async unprotect(stack: string, urn: string | undefined, signal?: AbortSignal, owner?: string): Promise<string[]> {
    return (await this.#ask(answers.urns, "unprotect", { stack, urn, owner }, signal)).urns;
  }

  allow(ms: number): void {
    this.processes.allow(ms);
  }

  close(): Promise<void> {
    return this.processes.close();
  }

  /**
   * The program runs here. What it has declared goes to the engine with the operation; the engine asks back for each call of a provider,
   * which the session answers.
   */
  protected async run(operation: Operation): Promise<Ran> {
    const { method, stack, program, options } = operation;
    const { timeoutMs } = this.options;
    const { signal, stop, object, refresh, savesOnce, sdkRuntime, plans, plan, message } = options;
    const { context, outputs, owner } = options;
    const events: EngineEvent[] = [];
    const session = this.openSession(operation);
    let prepared: PreparedProgram | undefined;
    let programError: unknown;
    let ended: Ended = {};
    try {
      if (program !== undefined)
        prepared = await prepareProgram(program, sdkRuntime, { timeoutMs, signals: [signal, stop] });
      if (prepared && "resources" in prepared.parameter) options.onDeclared?.(prepared.parameter.resources);
      const of = { stack, owner, object: object?.uid, mustExist: object?.mustExist };
      const guard = context?.object && guardOf(context.object);
      const common = { ...of, guard, refresh, savesOnce, plans, plan, message, outputs: outputs !== undefined };
      const params = { ...common, ...(prepared && { program: prepared.parameter }) };
      const listener = {
        session,
        event: (event: EngineEvent) => void events.push(event),
        outputs: async () => escapeReserved((await outputs?.(reportOf(events).resources)) ?? {}),
      };
      ended = await this.processes.use(
        (process) =>
          runInterruptible({ timeoutMs, signal, stop, fence: context?.fence }, () =>
            process.operate(method, params, listener),
          ),
        { operates: true },
      );
    } catch (error) {
      if (program === undefined || prepared !== undefined) throw error;
      if (signal?.aborted || stop?.aborted) ended = { interrupted: "aborted" };
      else programError = asError(error);
    } finally {
      session.close();
      prepared?.close();
    }
    const outcome = outcomeOf(ended);
    this.processes.count(outcome?.phasesMs);
    const { failures: refused, unrecorded, given, observed } = session;
    const thrown = programError ?? prepared?.error();
    return { stack, ended, outcome, events, refused, unrecorded, given, observed, programError: thrown };
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
      const answer = await this.processes.use((process) => process.ask(method, params, onStack));
      signal?.throwIfAborted();
      if (schema.Check(answer)) return answer;
      throw new Error(`the engine's answer to ${method} has another form`);
    } catch (error) {
      if (error instanceof ClassifiedError || signal?.aborted) throw error;
      throw refusal(error);
    }
  }
}

/** @throws RetryableError `Locked`, `BackendForeign`, `Unreadable` */
function outcomeOf({ result, error }: Ended): EngineOutcome | undefined {
  if (answers.outcome.Check(result)) return result;
  if (!(error instanceof RpcError)) return undefined;
  if (error.kind !== undefined) throw refusal(error);
  // Whether there is such a stack is not known.
  return { exists: true, succeeded: false, message: withoutPasswords(error.message), phasesMs: {} };
}

function refusal(error: unknown): RetryableError {
  const kind = error instanceof RpcError ? error.kind : undefined;
  const reason = kind === "locked" ? "Locked" : kind === "foreign" ? "BackendForeign" : "Unreadable";
  return new RetryableError(reason, withoutPasswords(errorMessageOf(error)));
}
