import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  type ErrorClass,
  errorClassOf,
  errorMessageOf,
  errorReasonOf,
  type ObjectReference,
  RetryableError,
} from "../../providers/errors";
import { checkFence, currentFence } from "../../providers/fence";
import type { ResourceFailure, SessionOptions } from "../../providers/host/session";
import { keyOfResource } from "../../stacks/contract/shared-stack";
import { type EngineReport, nameOf, readEventLog, type StackResource } from "./event-log";
import {
  checkpointPath,
  createStack,
  fileBackendDirectory,
  forgetPendingCreates,
  listStacks,
  pruneHistory,
  removeStack,
  removeTornLocks,
  stackExists,
} from "./file-backend";
import { type Program, type ProgramOptions, type ServedProgram, serveProgram } from "./language-server";
import { isStale, parseLocks } from "./lock";
import { copyStack, cutHistory, listStackRows, removeStackRows } from "./postgres-backend";
import { type CommandResult, type PulumiOptions, runPulumi } from "./pulumi";

/** One thing that went wrong in an update. */
export interface UpdateFailure {
  /** The resource's name and URN, when it was about one. */
  resource?: string;
  urn?: string;
  errorClass: ErrorClass;
  reason: string;
  message: string;
  /** The Kubernetes object that it is about, if it names one. */
  object?: ObjectReference;
}

/** What an update did. */
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
  /** The update was not for one object alone, and is reported as a whole by who ran it. */
  isPartial?: true;
  durationMs: number;
}

export interface UpdateOptions extends ProgramOptions {
  /** Compare the state with the real world first, so that drift is repaired. */
  refresh?: boolean;
  signal?: AbortSignal;
  /**
   * Save the state at the end, not after each step. A checkpoint is the whole state: with many steps, or in a large stack,
   * that is most of an update's time. What a killed update made is then in no state; see {@link findsWhatWasCutOff}.
   */
  savesOnce?: boolean;
  /** For stacks that several objects share. */
  shared?: {
    /**
     * URNs of components: they, all below them and nothing else take part; what the program does not register of that is
     * deleted. Without, everything takes part.
     */
    targets?: readonly string[];
  };
}

type DestroyOptions = UpdateOptions & Pick<SessionOptions, "release" | "forget">;

/** The engine works on so many resources of a stack at once; their provider may write them together. */
const PARALLEL = 64;

export interface StackEngineOptions extends PulumiOptions {
  log: { info(fields: object, message: string): void; warn(fields: object, message: string): void };
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
  /** The directory of the `file://` backend, when it is one. */
  readonly #directory: string | undefined;

  constructor(options: StackEngineOptions) {
    this.#options = options;
    this.#directory = fileBackendDirectory(options.workspace.backendUrl);
  }

  /** Creates or updates what `program` registers; makes the stack when there is none. */
  async up(stack: string, program: Program, options: UpdateOptions = {}): Promise<UpdateResult> {
    const { workspace } = this.#options;
    if (this.#directory !== undefined && !(await stackExists(this.#directory, stack))) {
      await createStack(this.#directory, stack, workspace.checkpointTemplate);
    }
    const served = await serveProgram(program, options);
    try {
      const args = ["up", "--client", served.address, "--exec-kind", "auto.inline"];
      if (options.refresh) args.push("--refresh");
      args.push(...sharedFlags(options));
      const run = () => this.#update("up", stack, args, options, served);
      const { isMissing, ...result } = await run();
      if (!isMissing) return result;
      await this.#command(["stack", "init", stack, "--no-select"], options);
      const { isMissing: _, ...second } = await run();
      return second;
    } finally {
      served.close();
      await this.#tidy(stack);
    }
  }

  /**
   * Deletes everything in a stack and then the stack with its history; or only targets, which must all exist, and
   * keeps the stack. A stack that does not exist is a success.
   *
   * @param options with `release`, the stack's resources are kept, unmanaged; with `forget`, no provider is asked
   */
  async destroy(stack: string, options: DestroyOptions = {}): Promise<UpdateResult> {
    const args = ["destroy", "--exec-kind", "auto.local", ...sharedFlags(options)];
    const { targets } = options.shared ?? {};
    if (targets === undefined && !this.isDirect) args.push("--remove");
    const { isMissing, ...result } = await this.#update("destroy", stack, args, options);
    if (targets === undefined && (isMissing || result.outcome === "succeeded")) await this.#remove(stack);
    else await this.#tidy(stack);
    return isMissing ? { ...result, outcome: "succeeded", failures: [] } : result;
  }

  /**
   * The URNs in a stack's state, parents first; `undefined` when there is no such stack.
   *
   * @throws RetryableError `Unreadable`
   */
  async recorded(stack: string, signal?: AbortSignal): Promise<string[] | undefined> {
    const { backendUrl, scratchDirectory } = this.#options.workspace;
    if (this.#directory !== undefined) return readUrns(checkpointPath(this.#directory, stack));
    const scratch = await mkdtemp(join(scratchDirectory, "state-"));
    try {
      if (backendUrl.startsWith("postgres://")) {
        const exists = await copyStack(backendUrl, scratch, stack, "checkpoint");
        return exists ? await readUrns(checkpointPath(scratch, stack)) : undefined;
      }
      const file = join(scratch, "state.json");
      const { exitCode, stderr, error } = await runPulumi(
        this.#options,
        ["stack", "export", "--file", file, "--stack", stack],
        { signal },
      );
      if (exitCode === 0) return await readUrns(file);
      if (error?.kind === "stackNotFound") return undefined;
      throw new RetryableError(
        "Unreadable",
        `the stack ${stack} could not be read: ${withoutPasswords(stderr.trim())}`,
      );
    } finally {
      await rm(scratch, { recursive: true, force: true });
    }
  }

  /** The names of the stacks that begin like this; none where a process would be needed to tell. */
  async stacks(start: string): Promise<string[]> {
    if (this.#directory !== undefined) return listStacks(this.#directory, start);
    return this.isDirect ? listStackRows(this.#options.workspace.backendUrl, start) : [];
  }

  /** Removes a stack's state and history, and leaves what it made as it is. A stack that does not exist is a success. */
  async forget(stack: string, signal?: AbortSignal): Promise<void> {
    if (this.isDirect) return this.#remove(stack);
    const args = ["stack", "rm", stack, "--force", "--yes"];
    const { exitCode, stderr, error } = await runPulumi(this.#options, args, { signal });
    if (exitCode !== 0 && error?.kind !== "stackNotFound") {
      throw new RetryableError(
        "Unreadable",
        `the stack ${stack} could not be removed: ${withoutPasswords(stderr.trim())}`,
      );
    }
  }

  /**
   * Whether states are read and stacks removed without a process. Removing takes less than the CLI's `--remove`, which
   * waits 140 ms for a missing file.
   */
  get isDirect(): boolean {
    return this.#directory !== undefined || this.#options.workspace.backendUrl.startsWith("postgres://");
  }

  /** @throws RetryableError when the database of the state cannot be reached, or the fence has come down */
  async #remove(stack: string): Promise<void> {
    const { backendUrl } = this.#options.workspace;
    checkFence();
    if (this.#directory !== undefined) await removeStack(this.#directory, stack);
    else if (this.isDirect) await removeStackRows(backendUrl, stack);
  }

  /** Cuts a stack's history. What cannot be removed in a database now stays until the next update. */
  async #tidy(stack: string): Promise<void> {
    if (currentFence()?.signal.aborted) return; // it is another's stack now
    const { workspace, log } = this.#options;
    if (this.#directory !== undefined) await pruneHistory(this.#directory, stack);
    else if (workspace.backendUrl.startsWith("postgres://")) {
      await cutHistory(workspace.backendUrl, stack).catch((error: unknown) =>
        log.warn({ stack, reason: errorMessageOf(error) }, "failed to clean up the stack's history"),
      );
    }
  }

  /** @returns with `isMissing`, whether nothing was done because there is no such stack */
  async #update(
    operation: UpdateResult["operation"],
    stack: string,
    args: string[],
    options: DestroyOptions,
    program?: ServedProgram,
  ): Promise<UpdateResult & { isMissing: boolean }> {
    const { host, workspace, timeoutMs } = this.#options;
    const started = performance.now();
    const { release, forget } = options;
    const session = host.openSession(stack, {
      fence: currentFence(),
      release,
      forget,
      onUnreplaced: program?.abandon,
    });
    try {
      const command = [...args, "--yes", "--skip-preview", "--stack", stack];
      const result = await this.#runUnlocked(stack, command, options);
      checkFence(); // whatever ended it, it is another's stack now
      const report = readEventLog(result.events, meantBy(options));
      // Only the engine's own event counts as success: on a broken CLI's exit code, resources that still exist would be released.
      const succeeded = result.exitCode === 0 && report.succeeded;
      if (result.exitCode === 0 && !succeeded) await refuseWithoutRoom(workspace.scratchDirectory);
      const { failures: refused } = session;
      const programError = program?.error();
      const failures = succeeded ? [] : collectFailures(result, report, refused, programError, timeoutMs);
      return {
        operation,
        outcome: succeeded ? "succeeded" : result.interrupted === "aborted" ? "interrupted" : "failed",
        changes: report.changes,
        resources: report.resources,
        deleted: report.deleted,
        failures,
        restDone: succeeded || (programError === undefined && isRestDone(result, report, refused)),
        durationMs: performance.now() - started,
        isMissing: result.error?.kind === "stackNotFound",
      };
    } finally {
      session.close();
    }
  }

  /**
   * Runs an update's command, after it has removed locks that are not a living process's. One that was interrupted may
   * have given up creations that its provider did not answer in time; they are not kept as pending.
   *
   * @throws RetryableError `Locked`
   */
  async #runUnlocked(stack: string, command: string[], options: UpdateOptions): Promise<CommandResult> {
    const { workspace, log } = this.#options;
    const run = () => this.#command(command, options, { events: true });
    let result = await run();
    if (result.exitCode !== 0 && this.#directory !== undefined) {
      const torn = await removeTornLocks(this.#directory, stack);
      if (torn.length > 0) {
        log.warn({ stack, torn }, "removed an incomplete lock");
        result = await run();
      }
    }
    if (result.interrupted !== undefined && result.signal === undefined) await this.#forgetPendingCreates(stack);
    if (result.error?.kind !== "locked") return result;
    const locks = parseLocks(result.error.message);
    if (locks.length === 0 || !locks.every((lock) => isStale(lock, (pid) => workspace.pulumi.owns(pid)))) {
      const holder = locks[0]?.text ?? result.error.message;
      throw new RetryableError("Locked", `the stack ${stack} is locked by another process: ${holder}`);
    }
    log.warn({ stack, locks }, "removing the lock of a dead process");
    // As long as the lock is there, a crash in between leads here again.
    if (this.#directory !== undefined) await this.#forgetPendingCreates(stack);
    await this.#command(["cancel", stack, "--yes"], options);
    if (this.#directory === undefined) await this.#forgetPendingCreates(stack);
    return run();
  }

  /** What {@link forgetPendingCreates} does; in other backends only the holder of the lock may write a state. */
  async #forgetPendingCreates(stack: string): Promise<void> {
    if (this.#directory !== undefined) return forgetPendingCreates(this.#directory, stack);
    const scratch = await mkdtemp(join(this.#options.workspace.scratchDirectory, "pending-"));
    const file = join(scratch, "state.json");
    try {
      const { exitCode } = await this.#command(["stack", "export", "--file", file, "--stack", stack], {});
      if (exitCode !== 0) return; // the update will say what is wrong
      const state = JSON.parse(await readFile(file, "utf8")) as { deployment?: { pending_operations?: unknown[] } };
      const { pending_operations: pending = [], ...rest } = state.deployment ?? {};
      if (pending.length === 0) return;
      await writeFile(file, JSON.stringify({ ...state, deployment: rest }), { mode: 0o600 });
      await this.#command(["stack", "import", "--file", file, "--stack", stack], {});
    } finally {
      await rm(scratch, { recursive: true, force: true });
    }
  }

  #command(args: string[], { signal, savesOnce }: UpdateOptions, { events = false } = {}): Promise<CommandResult> {
    return runPulumi(this.#options, args, { signal, savesOnce, events });
  }
}

/** @throws Error for no targets at all, which the engine would take for everything */
function sharedFlags({ shared }: UpdateOptions): string[] {
  if (shared?.targets?.length === 0) throw new Error("a targeted update needs at least one resource");
  const flags = ["--continue-on-error", "--parallel", String(PARALLEL)];
  if (shared?.targets === undefined) return flags;
  return [...flags, ...targetFlags(shared.targets)];
}

/** For an update of these, of all below them, and of nothing else. */
export function targetFlags(urns: readonly string[]): string[] {
  return ["--target-dependents", ...urns.flatMap((urn) => ["--target", urn])];
}

/** Which resources an update is about, by their names: the targets and all below them. */
function meantBy({ shared }: UpdateOptions): (name: string) => boolean {
  if (shared?.targets === undefined) return () => true;
  const keys = new Set(shared.targets.map((urn) => keyOfResource(nameOf(urn))));
  return (name) => keys.has(keyOfResource(name));
}

/** What a command printed without an account of what failed is kept to this length. */
const MAX_WORDS = 64 * 1024;

const UPDATE_FAILED = /^(update|preview|destroy) failed$/;

/** Whether an update that failed went to its end, and only operations of single resources failed. */
function isRestDone(
  { signal, interrupted }: CommandResult,
  report: EngineReport,
  refused: readonly ResourceFailure[],
): boolean {
  if (signal !== undefined || interrupted !== undefined) return false;
  const failed = new Set(report.failed);
  const isOneResources = (urn: string | undefined) => urn !== undefined && failed.has(urn);
  return (
    failed.size > 0 &&
    refused.every(({ urn }) => isOneResources(urn)) &&
    report.errors.every(({ urn, message }) => isOneResources(urn) || UPDATE_FAILED.test(message))
  );
}

/** @throws RetryableError when nothing can be written: then the CLI could not tell what it did, and does not say so */
async function refuseWithoutRoom(directory: string): Promise<void> {
  try {
    await writeFile(join(directory, "room"), Buffer.alloc(4096));
  } catch (error) {
    throw new RetryableError(errorReasonOf(error), `the work directory cannot be written to: ${errorMessageOf(error)}`);
  }
}

/** The URNs in a checkpoint, or an exported state; `undefined` when the file does not exist. */
async function readUrns(file: string): Promise<string[] | undefined> {
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  if (text === undefined) return undefined;
  const state = JSON.parse(text) as { checkpoint?: { latest?: Deployment }; deployment?: Deployment };
  return ((state.checkpoint?.latest ?? state.deployment)?.resources ?? []).map(({ urn }) => urn);
}

interface Deployment {
  resources?: { urn: string }[] | null;
}

/** The most exact account of each failure: the provider's or program's own error where there is one. */
export function collectFailures(...account: Parameters<typeof findFailures>): UpdateFailure[] {
  return findFailures(...account).map((failure) => ({ ...failure, message: withoutPasswords(failure.message) }));
}

function findFailures(
  result: CommandResult,
  report: EngineReport,
  refused: readonly ResourceFailure[],
  programError: unknown,
  timeoutMs: number,
): UpdateFailure[] {
  if (result.interrupted === "timeout") {
    return [
      { errorClass: "retryable", reason: "Timeout", message: `the update took longer than ${timeoutMs / 1000} s` },
    ];
  }
  if (result.signal !== undefined) {
    const message = `Pulumi was killed by ${result.signal}`;
    return [{ errorClass: "retryable", reason: "Killed", message }];
  }
  const failures: UpdateFailure[] = refused.map(({ urn, ...failure }) => ({ resource: nameOf(urn), urn, ...failure }));
  if (programError !== undefined) {
    failures.push({
      errorClass: errorClassOf(programError),
      reason: errorReasonOf(programError),
      message: errorMessageOf(programError),
    });
  }
  if (failures.length > 0) return failures;
  const errors = report.errors.filter(({ message }) => !UPDATE_FAILED.test(message));
  if (errors.length === 0) {
    const output =
      (result.stderr || result.stdout || result.error?.message || "").trim().slice(-MAX_WORDS) || "no output";
    const unexplained = result.exitCode === 0 ? "Pulumi exited without reporting what it did: " : "";
    errors.push({ message: unexplained + output });
  }
  return errors.map(({ urn, message }) => ({
    ...(urn && { resource: nameOf(urn), urn }),
    errorClass: "retryable",
    reason: "UpdateFailed",
    message,
  }));
}

/** The CLI quotes its backend's URL in errors, and failures end up in conditions, which many people may read. */
function withoutPasswords(text: string): string {
  return text.replace(/(\/\/[^\s:/@]*):[^\s/]*@/g, "$1:***@");
}
