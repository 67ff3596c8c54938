import Type from "typebox";
import { Compile } from "typebox/compile";
import { ClassifiedError, errorMessageOf, RetryableError } from "../../providers/errors";
import type { OnStack } from "./engine-process";
import type { EngineProcesses } from "./engine-processes";
import { withoutPasswords } from "./failures";
import { RpcError } from "./rpc";
import type { StackState } from "./stack-state";
import { resourceChangeSchema } from "./update-changes";

/** One update of a stack. */
export const historyEntrySchema = Type.Object({
  version: Type.Optional(Type.Integer()),
  kind: Type.String(),
  startTime: Type.String({ description: "ISO 8601" }),
  endTime: Type.Optional(Type.String()),
  result: Type.String(),
  /** How many resources, by operation; the stack itself counts as one. */
  resourceChanges: Type.Optional(Type.Record(Type.String(), Type.Integer({ minimum: 0 }))),
  /** Which resources; absent for updates by the CLI. */
  changes: Type.Optional(Type.Array(resourceChangeSchema)),
});
export type HistoryEntry = Type.Static<typeof historyEntrySchema>;

const state = Type.Unsafe<StackState>({ type: "object", required: ["version", "deployment"] });
const nullableState = Compile(Type.Object({ state: Type.Union([Type.Null(), state]) }));
const wholeState = Compile(state);
const names = Compile(Type.Object({ names: Type.Array(Type.String()) }));
const history = Compile(
  Type.Object({
    entries: Type.Union([
      Type.Null(),
      Type.Array(
        Type.Object({
          version: Type.Integer(),
          kind: Type.String(),
          startTime: Type.Number(),
          endTime: Type.Number(),
          result: Type.String(),
          resourceChanges: Type.Optional(Type.Record(Type.String(), Type.Integer())),
          changes: Type.Optional(Type.Array(resourceChangeSchema)),
        }),
      ),
    ]),
  }),
);
const locks = Compile(Type.Object({ locks: Type.Array(Type.String()) }));
const urns = Compile(Type.Object({ urns: Type.Array(Type.String()) }));
const anything = Compile(Type.Unknown());

/** The states of stacks in their backend. All throw RetryableError `Unreadable`, `Locked`, `NoPulumi`. */
export class StackStates {
  readonly #engine: EngineProcesses;

  constructor(engine: EngineProcesses) {
    this.#engine = engine;
  }

  /** A stack's state, secrets encrypted; `undefined` when there is no such stack. */
  async read(stack: string, signal?: AbortSignal): Promise<StackState | undefined> {
    return (await this.#ask(nullableState, "export", { stack }, signal)).state ?? undefined;
  }

  /** Reads every stack's state. On `postgres://`, all are of the same moment; elsewhere, each is of its own. */
  async readAll(onState: (name: string, state: StackState) => Promise<void>, signal?: AbortSignal): Promise<void> {
    await this.#ask(anything, "exportAll", {}, signal, async (name, state) => {
      if (!wholeState.Check(state)) throw new RetryableError("Unreadable", `the stack ${name} has no state`);
      await onState(name, state);
    });
  }

  /** Replaces a stack's state with one of `pulumi stack export`; makes the stack when there is none. */
  async write(stack: string, deployment: StackState, signal?: AbortSignal): Promise<void> {
    await this.#ask(anything, "import", { stack, deployment }, signal);
  }

  async names(signal?: AbortSignal): Promise<string[]> {
    return (await this.#ask(names, "names", {}, signal)).names;
  }

  /** The updates, newest first; `undefined` when there is no such stack. */
  async history(stack: string, signal?: AbortSignal): Promise<HistoryEntry[] | undefined> {
    const { entries } = await this.#ask(history, "history", { stack }, signal);
    return entries?.map(({ startTime, endTime, resourceChanges = {}, changes, ...entry }) => ({
      version: entry.version,
      kind: entry.kind,
      result: entry.result,
      startTime: new Date(startTime * 1000).toISOString(),
      endTime: new Date(endTime * 1000).toISOString(),
      resourceChanges,
      ...(changes && { changes }),
    }));
  }

  /** Removes a stack's state and history. A stack that does not exist is a success. */
  async remove(stack: string, signal?: AbortSignal): Promise<void> {
    await this.#ask(anything, "remove", { stack }, signal);
  }

  /** Removes all locks of a stack. @returns who held them */
  async unlock(stack: string, signal?: AbortSignal): Promise<string[]> {
    return (await this.#ask(locks, "unlock", { stack }, signal)).locks;
  }

  /** Takes the protection from a stack's resources, or from one. @returns the URNs of those that were protected */
  async unprotect(stack: string, urn: string | undefined, signal?: AbortSignal): Promise<string[]> {
    return (await this.#ask(urns, "unprotect", { stack, urn }, signal)).urns;
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
      const answer = await this.#engine.use((process) => process.ask(method, params, onStack));
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
