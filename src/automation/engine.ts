import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { errorMessageOf, RetryableError } from "../../providers/errors";
import { checkFence, currentFence } from "../../providers/fence";
import type { ProviderHost } from "../../providers/host/server";
import type { SessionOptions } from "../../providers/host/session";
import type { Backend } from "./backend";
import { type EngineReport, readEventLog, type StackResource } from "./event-log";
import { assess, type UpdateFailure } from "./failures";
import { type Program, type ProgramOptions, type ServedProgram, serveProgram } from "./language-server";
import { isStale, parseLocks } from "./lock";
import { openBackend } from "./open-backend";
import { type CommandResult, type PulumiOptions, runPulumi } from "./pulumi";
import { urnsIn } from "./stack-state";

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

/** The engine works on so many resources of a stack at once; their provider may write them together. */
const PARALLEL = 64;

export interface StackEngineOptions extends PulumiOptions {
  host: ProviderHost;
  log: { warn(fields: object, message: string): void };
}

/**
 * Runs updates of stacks: one command each, for inline programs, with the providers of this process.
 *
 * The Automation API's own `Stack.up` starts three more processes (`stack output` twice and `stack history`) to learn
 * what the engine's events have told already, and `createOrSelectStack` one or two before; this keeps its language
 * server and the CLI's contract and leaves those out.
 */
export class StackEngine {
  readonly #options: StackEngineOptions;
  readonly #backend: Backend;

  constructor(options: StackEngineOptions) {
    this.#options = options;
    this.#backend = openBackend(options);
  }

  /** Creates or updates what `program` registers; makes the stack when there is none. */
  async up(stack: string, program: Program, options: UpdateOptions = {}): Promise<UpdateResult> {
    await this.#backend.createMissing?.(stack);
    const served = await serveProgram(program, options);
    try {
      const args = ["--client", served.address, "--exec-kind", "auto.inline"];
      if (options.refresh) args.push("--refresh");
      return await this.#update("up", stack, args, options, served);
    } finally {
      served.close();
      await this.#tidy(stack);
    }
  }

  /**
   * Deletes everything in a stack and then the stack with its history. A stack that does not exist is a success.
   *
   * @param options with `release`, the stack's resources are kept, unmanaged
   */
  async destroy(stack: string, options: DestroyOptions = {}): Promise<UpdateResult> {
    const args = ["--exec-kind", "auto.local"];
    const { isDirect } = this.#backend;
    // To remove a stack directly takes less than the CLI, which waits 140 ms for a missing file.
    if (!isDirect) args.push("--remove");
    const result = await this.#update("destroy", stack, args, options);
    if (isDirect && result.outcome === "succeeded") await this.forget(stack);
    else await this.#tidy(stack);
    return result;
  }

  /**
   * The URNs in a stack's state, parents first; `undefined` when there is no such stack.
   *
   * @throws RetryableError `Unreadable`
   */
  async recorded(stack: string, signal?: AbortSignal): Promise<string[] | undefined> {
    const state = await this.#backend.state(stack, signal);
    return state && urnsIn(state);
  }

  /**
   * Removes a stack's state and history, and leaves what it made as it is. A stack that does not exist is a success.
   *
   * @throws RetryableError when the backend cannot be reached, or the fence has come down
   */
  async forget(stack: string, signal?: AbortSignal): Promise<void> {
    checkFence();
    await this.#backend.remove(stack, signal);
  }

  /** Cuts a stack's history. What cannot be removed now stays until the next update. */
  async #tidy(stack: string): Promise<void> {
    if (currentFence()?.signal.aborted) return; // it is another's stack now
    await this.#backend
      .cutHistory?.(stack)
      .catch((error: unknown) =>
        this.#options.log.warn({ stack, reason: errorMessageOf(error) }, "failed to clean up the stack's history"),
      );
  }

  async #update(
    operation: UpdateResult["operation"],
    stack: string,
    args: readonly string[],
    options: DestroyOptions,
    program?: ServedProgram,
  ): Promise<UpdateResult> {
    const { host, workspace, timeoutMs } = this.#options;
    const started = performance.now();
    const flags = ["--continue-on-error", "--parallel", String(PARALLEL)];
    const session = host.openSession(stack, { ...options, fence: currentFence(), onUnreplaced: program?.abandon });
    try {
      const words = [...args, ...flags, "--yes", "--skip-preview", "--stack", stack];
      const result = await this.#runUnlocked(operation, stack, words, options);
      checkFence(); // whatever ended it, it is another's stack now
      const report = readEventLog(result.events);
      const assessment = assess(result, report, session.failures, program?.error(), timeoutMs);
      if (result.exitCode === 0 && !assessment.succeeded) await refuseWithoutRoom(workspace.scratchDirectory);
      const isGone = operation === "destroy" && result.error?.kind === "stackNotFound";
      return {
        operation,
        outcome:
          assessment.succeeded || isGone ? "succeeded" : result.interrupted === "aborted" ? "interrupted" : "failed",
        changes: report.changes,
        resources: report.resources,
        deleted: report.deleted,
        failures: isGone ? [] : assessment.failures,
        restDone: assessment.restDone,
        durationMs: performance.now() - started,
      };
    } finally {
      session.close();
    }
  }

  /**
   * Runs an update's command, after it has removed locks that are not a living process's, and made a stack that a program
   * is to fill. One that was interrupted may have given up creations that its provider did not answer in time; they are not
   * kept as pending.
   *
   * @throws RetryableError `Locked`
   */
  async #runUnlocked(
    operation: UpdateResult["operation"],
    stack: string,
    words: readonly string[],
    options: UpdateOptions,
  ): Promise<CommandResult> {
    const { workspace, log } = this.#options;
    const run = () => this.#command([operation, ...words], options, { events: true });
    let result = await run();
    if (result.error?.kind === "stackNotFound" && operation === "up") {
      await this.#command(["stack", "init", stack, "--no-select"], options);
      result = await run();
    }
    if (result.exitCode !== 0) {
      const torn = (await this.#backend.removeTornLocks?.(stack)) ?? [];
      if (torn.length > 0) {
        log.warn({ stack, torn }, "removed an incomplete lock");
        result = await run();
      }
    }
    if (result.interrupted !== undefined && result.signal === undefined) {
      await this.#backend.forgetPendingCreates(stack);
    }
    if (result.error?.kind !== "locked") return result;
    const locks = parseLocks(result.error.message);
    if (locks.length === 0 || !locks.every((lock) => isStale(lock, (pid) => workspace.pulumi.owns(pid)))) {
      const holder = locks[0]?.text ?? result.error.message;
      throw new RetryableError("Locked", `the stack ${stack} is locked by another process: ${holder}`);
    }
    log.warn({ stack, locks }, "removing the lock of a dead process");
    await this.#backend.unlock(stack, () => this.#command(["cancel", stack, "--yes"], options));
    return run();
  }

  #command(args: string[], { signal, savesOnce }: UpdateOptions, { events = false } = {}): Promise<CommandResult> {
    return runPulumi(this.#options, args, { signal, savesOnce, events });
  }
}

/** @throws RetryableError when nothing can be written: then the CLI could not tell what it did, and does not say so */
async function refuseWithoutRoom(directory: string): Promise<void> {
  try {
    await writeFile(join(directory, "room"), Buffer.alloc(4096));
  } catch (error) {
    throw new RetryableError("SystemError", `the work directory cannot be written to: ${errorMessageOf(error)}`);
  }
}
