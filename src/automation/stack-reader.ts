import pLimit, { type LimitFunction } from "p-limit";
import { RetryableError } from "../../providers/errors";
import { StackEngine, type StackEngineOptions } from "./engine";
import type { UpdateFailure } from "./failures";
import { type PlannedChange, plannedChanges } from "./planned-changes";
import type { Program, ProgramOptions } from "./program";
import type { StackState } from "./stack-state";
import type { HistoryEntry } from "./stack-states";

export type { HistoryEntry } from "./stack-states";
export { historyEntrySchema } from "./stack-states";

export interface StackReaderOptions extends StackEngineOptions {
  /** Previews that run at the same time, of all stacks; 1 by default. */
  concurrency?: number;
}

/** What an update would do. */
export interface StackPreview {
  /** Whether there is such a stack yet. */
  exists: boolean;
  changes: PlannedChange[];
  /** Why it could not be told; empty when it could. */
  failures: UpdateFailure[];
}

export interface PreviewOptions extends ProgramOptions {
  /** Compare the state with the real world first, so that the repair of drift shows. */
  refresh?: boolean;
  signal?: AbortSignal | undefined;
}

/**
 * Looks at stacks and changes nothing: it takes no lock, writes no state and makes no stack. It may be used beside an
 * operator that works on the same stacks, with credentials that may not write.
 */
export class StackReader {
  readonly #engine: StackEngine;
  readonly #slots: LimitFunction;

  constructor(options: StackReaderOptions) {
    this.#engine = new StackEngine(options);
    this.#slots = pLimit(options.concurrency ?? 1);
  }

  /** What `up` with this program would do; of a stack that does not exist, to an empty one. */
  preview(stack: string, program: Program, options: PreviewOptions = {}): Promise<StackPreview> {
    return this.#plan("preview", stack, options, program);
  }

  /** What `destroy` would do: nothing when there is no such stack. */
  previewDestroy(stack: string, options: PreviewOptions = {}): Promise<StackPreview> {
    return this.#plan("previewDestroy", stack, options);
  }

  /** The state, secrets encrypted; `undefined` when there is no such stack. */
  state(stack: string, signal?: AbortSignal): Promise<StackState | undefined> {
    return this.#engine.states.read(stack, signal);
  }

  /** The updates, newest first; `undefined` when there is no such stack. */
  history(stack: string, signal?: AbortSignal): Promise<HistoryEntry[] | undefined> {
    return this.#engine.states.history(stack, signal);
  }

  async #plan(
    method: "preview" | "previewDestroy",
    stack: string,
    { refresh = false, ...options }: PreviewOptions,
    program?: Program,
  ): Promise<StackPreview> {
    const { ended, events, outcome, assessment } = await this.#slots(() =>
      this.#engine.operate(method, stack, { refresh }, options, program),
    );
    if (ended.interrupted === "aborted") throw new RetryableError("Interrupted", "the preview was interrupted");
    return { exists: outcome?.exists ?? false, changes: plannedChanges(events), failures: assessment.failures };
  }
}
