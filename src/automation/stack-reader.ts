import { join } from "node:path";
import { pathToFileURL } from "node:url";
import pLimit, { type LimitFunction } from "p-limit";
import Type from "typebox";
import { Clean } from "typebox/value";
import { RetryableError } from "../../providers/errors";
import type { ProviderHost } from "../../providers/host/server";
import type { Backend, ReadableStack } from "./backend";
import { readEventLog } from "./event-log";
import { assess, type UpdateFailure } from "./failures";
import { createStack } from "./file-backend";
import { type Program, type ProgramOptions, type ServedProgram, serveProgram } from "./language-server";
import { openBackend } from "./open-backend";
import { type PlannedChange, readPlannedChanges } from "./planned-changes";
import { askPulumi, type PulumiOptions, runPulumi } from "./pulumi";
import { withScratch } from "./scratch";
import type { StackState } from "./stack-state";
import { readUpdateChanges, resourceChangeSchema } from "./update-changes";

export interface StackReaderOptions extends PulumiOptions {
  host: ProviderHost;
  /** Previews that run at the same time, of all stacks; 1 by default. */
  concurrency?: number;
}

/** One update of a stack. The CLI's history also holds the CLI's own environment, which says nothing about a stack. */
export const historyEntrySchema = Type.Object({
  version: Type.Optional(Type.Integer()),
  kind: Type.String(),
  startTime: Type.String({ description: "ISO 8601" }),
  endTime: Type.Optional(Type.String()),
  result: Type.String(),
  /** How many resources, by operation; the stack itself counts as one. */
  resourceChanges: Type.Optional(Type.Record(Type.String(), Type.Integer({ minimum: 0 }))),
  /** Which resources; absent for old updates, and where the backend keeps no checkpoints that can be compared. */
  changes: Type.Optional(Type.Array(resourceChangeSchema)),
});
export type HistoryEntry = Type.Static<typeof historyEntrySchema>;

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

const NOTHING: StackPreview = { exists: false, changes: [], failures: [] };

const HISTORY_PAGE = "100";

/**
 * Looks at stacks and changes nothing: it takes no lock, writes no state and makes no stack. It may be used beside an
 * operator that works on the same stacks, with credentials that may not write.
 */
export class StackReader {
  readonly #options: StackReaderOptions;
  readonly #backend: Backend;
  /** By stack, the preview that was asked for last: one at a time, since the providers answer one. */
  readonly #last = new Map<string, Promise<unknown>>();
  readonly #slots: LimitFunction;

  constructor(options: StackReaderOptions) {
    this.#options = options;
    this.#slots = pLimit(options.concurrency ?? 1);
    this.#backend = openBackend(options);
  }

  /** What `up` with this program would do; of a stack that does not exist, to an empty one. */
  async preview(stack: string, program: Program, options: PreviewOptions = {}): Promise<StackPreview> {
    const attempt = async (readable: ReadableStack) => {
      const served = await serveProgram(program, options);
      try {
        const args = ["preview", "--client", served.address, "--exec-kind", "auto.inline"];
        return await this.#plan(stack, args, options, readable, served);
      } finally {
        served.close();
      }
    };
    const preview = await this.#backend.look(stack, "checkpoint", attempt);
    if (preview?.exists) return preview;
    return this.#withEmptyStack(stack, async (empty) => ({ ...(await attempt(empty)), exists: false }));
  }

  /** What `destroy` would do: nothing when there is no such stack. */
  async previewDestroy(stack: string, options: PreviewOptions = {}): Promise<StackPreview> {
    const args = ["destroy", "--preview-only", "--exec-kind", "auto.local"];
    const look = (readable: ReadableStack) => this.#plan(stack, args, options, readable);
    return (await this.#backend.look(stack, "checkpoint", look)) ?? NOTHING;
  }

  /** The state, secrets encrypted; `undefined` when there is no such stack. */
  state(stack: string, signal?: AbortSignal): Promise<StackState | undefined> {
    return this.#backend.state(stack, signal);
  }

  /** The updates, newest first; `undefined` when there is no such stack. */
  async history(stack: string, signal?: AbortSignal): Promise<HistoryEntry[] | undefined> {
    const args = ["stack", "history", "--json", "--page-size", HISTORY_PAGE, "--stack", stack];
    return this.#backend.look(stack, "history", async ({ backendUrl, directory }) => {
      const failure = `the stack ${stack} could not be read`;
      const text = await askPulumi(this.#options, args, failure, { signal, backendUrl });
      if (text === undefined) return undefined;
      const entries = Clean(Type.Array(historyEntrySchema), JSON.parse(text)) as HistoryEntry[];
      const changes = directory === undefined ? [] : await readUpdateChanges(directory, stack, entries);
      return entries.map((entry, index) => ({
        ...entry,
        resourceChanges: entry.resourceChanges ?? {},
        ...(changes[index] && { changes: changes[index] }),
      }));
    });
  }

  async #plan(
    stack: string,
    args: readonly string[],
    { refresh = false, signal }: PreviewOptions,
    { backendUrl }: ReadableStack,
    served?: ServedProgram,
  ): Promise<StackPreview> {
    const { host, timeoutMs } = this.#options;
    const command = [...args, ...(refresh ? ["--refresh"] : []), "--stack", stack];
    const { result, session } = await this.#oneAtATime(stack, async () => {
      const session = host.openSession(stack);
      const run = () => runPulumi(this.#options, command, { signal, backendUrl, events: true });
      const result = await this.#slots(run).finally(() => session.close());
      return { result, session };
    });
    if (result.interrupted === "aborted") throw new RetryableError("Interrupted", "the preview was interrupted");
    if (result.error?.kind === "stackNotFound") return NOTHING;
    const report = readEventLog(result.events);
    const { failures } = assess(result, report, session.failures, served?.error(), timeoutMs);
    return { exists: true, changes: readPlannedChanges(result.events), failures };
  }

  #oneAtATime<T>(stack: string, work: () => Promise<T>): Promise<T> {
    const done = (this.#last.get(stack) ?? Promise.resolve()).then(work, work);
    this.#last.set(stack, done);
    return done;
  }

  /** Runs with a backend that has this one stack, with nothing in it. */
  async #withEmptyStack<T>(stack: string, run: (stack: ReadableStack) => Promise<T>): Promise<T> {
    const { scratchDirectory, checkpointTemplate } = this.#options.workspace;
    return withScratch(scratchDirectory, "empty", async (directory) => {
      await createStack(join(directory, ".pulumi"), stack, checkpointTemplate);
      return run({ backendUrl: pathToFileURL(directory).href });
    });
  }
}
