import { mkdtemp, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { type ErrorClass, errorClassOf, errorMessageOf, errorReasonOf, RetryableError } from "../../providers/errors";
import { checkFence, currentFence } from "../../providers/fence";
import type { ProviderHost } from "../../providers/host/server";
import type { CommandResult } from "./command";
import { type EngineReport, nameOf, readEventLog, type StackResource } from "./event-log";
import { createStack, fileBackendDirectory, pruneHistory, removeLeftovers, stackExists } from "./file-backend";
import { type Program, serveProgram } from "./language-server";
import { isStale, parseLocks } from "./lock";
import { type PulumiOptions, runPulumi } from "./pulumi";
import { PROJECT } from "./workspace";

/** One thing that went wrong in an update. */
export interface UpdateFailure {
  /** The resource's name, when it was about one. */
  resource?: string;
  errorClass: ErrorClass;
  reason: string;
  message: string;
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
  durationMs: number;
}

export interface UpdateOptions {
  /** Compare the state with the real world first, so that drift is repaired. */
  refresh?: boolean;
  signal?: AbortSignal;
}

export interface StackEngineOptions extends PulumiOptions {
  log: { info(fields: object, message: string): void; warn(fields: object, message: string): void };
}

/** What the CLI says of a stack that does not exist. */
export const NO_STACK = /no stack named .* found/;

/**
 * Runs updates of stacks: one CLI process each, for inline programs, with the providers of this process.
 *
 * The Automation API's own `Stack.up` starts three more processes (`stack output` twice and `stack history`) to learn
 * what the engine's events have told already, and `createOrSelectStack` one or two before; this keeps its language
 * server and its CLI contract and leaves those out.
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
    if (this.#directory !== undefined && !(await stackExists(this.#directory, PROJECT, stack))) {
      await createStack(this.#directory, PROJECT, stack, workspace.checkpointTemplate);
    }
    const served = await serveProgram(program);
    try {
      const args = ["up", "--client", served.address, "--exec-kind", "auto.inline"];
      if (options.refresh) args.push("--refresh");
      const run = () => this.#update("up", stack, args, options, () => served.error());
      const result = await run();
      if (!result.failures.some(({ message }) => NO_STACK.test(message))) return result;
      await this.#command(["stack", "init", stack, "--no-select"], options);
      return await run();
    } finally {
      served.close();
      if (this.#directory !== undefined) await pruneHistory(this.#directory, PROJECT, stack);
    }
  }

  /**
   * Deletes everything in a stack and then the stack with its history. A stack that does not exist is a success.
   *
   * @param options with `release`, what the stack made is left as it is, and is nobody's
   */
  async destroy(stack: string, options: UpdateOptions & { release?: boolean } = {}): Promise<UpdateResult> {
    const { host } = this.#options;
    const args = ["destroy", "--remove", "--exec-kind", "auto.local"];
    if (options.release) host.releaseInstead(stack, true);
    const result = await this.#update("destroy", stack, args, options).finally(() => host.releaseInstead(stack, false));
    const gone = result.outcome === "failed" && result.failures.every(({ message }) => NO_STACK.test(message));
    if ((gone || result.outcome === "succeeded") && this.#directory !== undefined) {
      await removeLeftovers(this.#directory, PROJECT, stack);
    }
    if (gone) return { ...result, outcome: "succeeded", failures: [] };
    return result;
  }

  async #update(
    operation: UpdateResult["operation"],
    stack: string,
    args: string[],
    options: UpdateOptions,
    programError: () => unknown = () => undefined,
  ): Promise<UpdateResult> {
    const { host, workspace, log } = this.#options;
    const started = performance.now();
    const scratch = await mkdtemp(join(workspace.scratchDirectory, `${operation}-`));
    const eventLog = join(scratch, "events.ndjson");
    const command = [...args, "--yes", "--skip-preview", "--stack", stack, "--event-log", eventLog];
    host.takeFailures(stack); // what an interrupted update left unasked
    host.guard(stack, currentFence());
    try {
      let result = await this.#command(command, options);
      const locks = parseLocks(result.stderr + result.stdout);
      if (result.exitCode !== 0 && locks.length > 0) {
        if (!locks.every((lock) => isStale(lock))) {
          throw new RetryableError("Locked", `the stack ${stack} is locked by another process: ${locks[0]?.text}`);
        }
        log.warn({ stack, locks }, "removing the lock of a process that is gone");
        await this.#command(["cancel", stack, "--yes"], options);
        result = await this.#command(command, options);
      }
      checkFence(); // whatever ended it, it is another's stack now
      const report = readEventLog(await readFile(eventLog, "utf8").catch(() => ""));
      const failures =
        result.exitCode === 0
          ? []
          : collectFailures(result, report, host.takeFailures(stack), programError(), this.#options.timeoutMs);
      return {
        operation,
        outcome: result.exitCode === 0 ? "succeeded" : result.interrupted === "aborted" ? "interrupted" : "failed",
        changes: report.changes,
        resources: report.resources,
        deleted: report.deleted,
        failures,
        durationMs: performance.now() - started,
      };
    } finally {
      host.guard(stack, undefined);
      await rm(scratch, { recursive: true, force: true });
    }
  }

  #command(args: string[], { signal }: UpdateOptions): Promise<CommandResult> {
    return runPulumi(this.#options, args, { signal });
  }
}

/** The most exact account of each failure: the provider's or program's own error where there is one. */
export function collectFailures(...account: Parameters<typeof findFailures>): UpdateFailure[] {
  return findFailures(...account).map((failure) => ({ ...failure, message: withoutPasswords(failure.message) }));
}

function findFailures(
  result: CommandResult,
  report: EngineReport,
  refused: ReturnType<ProviderHost["takeFailures"]>,
  programError: unknown,
  timeoutMs: number,
): UpdateFailure[] {
  if (result.interrupted === "timeout") {
    return [
      { errorClass: "retryable", reason: "Timeout", message: `the update took longer than ${timeoutMs / 1000} s` },
    ];
  }
  if (result.signal !== undefined) {
    const message = `the Pulumi CLI was ended from outside, by ${result.signal}`;
    return [{ errorClass: "retryable", reason: "Killed", message }];
  }
  const failures: UpdateFailure[] = refused.map(({ urn, ...failure }) => ({ resource: nameOf(urn), ...failure }));
  if (programError !== undefined) {
    failures.push({
      errorClass: errorClassOf(programError),
      reason: errorReasonOf(programError),
      message: errorMessageOf(programError),
    });
  }
  if (failures.length > 0) return failures;
  const errors = report.errors.filter(({ message }) => !/^(update|preview) failed$/.test(message));
  if (errors.length === 0) errors.push({ message: (result.stderr || result.stdout).trim() || "no output" });
  return errors.map(({ urn, message }) => ({
    ...(urn && { resource: nameOf(urn) }),
    errorClass: "retryable",
    reason: "UpdateFailed",
    message,
  }));
}

/** The CLI quotes its backend's URL in errors, and failures end up in conditions, which many people may read. */
function withoutPasswords(text: string): string {
  return text.replace(/(\/\/[^\s:/@]*):[^\s/]*@/g, "$1:***@");
}
