import { once } from "node:events";
import path from "node:path";
import { Worker } from "node:worker_threads";
import type { Logger } from "pino";
import { errorMessageOf, TerminalError } from "../../providers/errors";
import type { ProviderHost } from "../../providers/host/session";
import { providersOf } from "../../providers/index";
import type { KubernetesClient } from "../../providers/kubernetes/client";
import { customResourceDefinition } from "../../stacks/contract/crd";
import { programDigest } from "../../stacks/contract/digest";
import { type AnyKind, kindName } from "../../stacks/contract/kind";
import { describeProblem, type LoadedKinds } from "../../stacks/kinds/catalog";
import type { Manager } from "../operator/manager";
import { permittedKinds } from "../operator/rights";
import { FolderWatch } from "./folder-watch";
import type { TypeCheckAnswer } from "./type-check";

/** An editor writes several files, or one in several steps. */
const QUIET_MS = 100;
const SOURCE = /^[^.].*\.([cm]?[jt]sx?|json)$/;

interface KindWatchOptions {
  chosen: LoadedKinds;
  /** Loads the same as the files are now. */
  load(): Promise<LoadedKinds>;
  /** The served kinds; kept up to date. */
  kinds: AnyKind[];
  client: KubernetesClient;
  host: Pick<ProviderHost, "serve">;
  operator: Pick<Manager, "serve" | "withdraw">;
  /** Tells what is served, of all that was loaded. */
  keep(kinds: readonly AnyKind[]): void;
  /** Applies CRDs, or refuses those of other operators. */
  prepare(client: KubernetesClient, kinds: readonly AnyKind[]): Promise<unknown>;
  restartAdmission(): Promise<void>;
  signal: AbortSignal;
  logger: Logger;
}

/**
 * Watches the files of kinds that are not built in, for an operator that runs. After an edit, types are checked, the kinds
 * are loaded again, and those that differ are served in place of their predecessors. An edit with errors is reported and
 * changes nothing.
 */
export class KindWatch {
  readonly #options: KindWatchOptions;
  readonly #closing = new AbortController();
  #typeCheck: Worker | undefined;
  readonly #folders = new FolderWatch(
    (file) => {
      if (file === null || SOURCE.test(file)) this.#edited(file);
    },
    (error, folder) => this.#options.logger.warn({ err: error, folder }, "cannot watch a folder"),
  );
  /** Of the served kinds, by name; without one, a kind is served again after the next edit. */
  readonly #digests: Map<string, string>;
  #reported: Set<string>;
  #timer: NodeJS.Timeout | undefined;
  #editedAt: number | undefined;
  /** The last one; `null` where any file may have changed. */
  #editedFile: string | null = null;
  #work: Promise<void> = Promise.resolve();

  constructor(options: KindWatchOptions) {
    const { chosen, kinds } = options;
    const logger = options.logger.child({ component: "watch" });
    this.#options = { ...options, logger, signal: AbortSignal.any([options.signal, this.#closing.signal]) };
    this.#digests = new Map(kinds.map((kind) => [kindName(kind), digestOf(kind)]));
    this.#reported = new Set(chosen.problems.map(describeProblem));
    this.#watch(chosen.files);
    const workerData = chosen.entries.filter((file) => /\.[cm]?tsx?$/.test(file));
    if (workerData.length > 0) {
      this.#typeCheck = new Worker(path.join(__dirname, "type-check.js"), { workerData });
      this.#work = this.#guard(this.#checkFirst());
    }
    logger.info({ folders: this.#folders.folders }, "watching the files of kinds");
  }

  async close(): Promise<void> {
    this.#closing.abort();
    clearTimeout(this.#timer);
    this.#folders.close();
    await this.#typeCheck?.terminate();
    await this.#work;
  }

  #watch(files: readonly string[]): void {
    for (const file of files) this.#folders.watch(path.dirname(file));
  }

  #edited(file: string | null): void {
    this.#editedFile = file;
    this.#editedAt ??= performance.now();
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      // What follows may take long, such as a check of types on a busy machine.
      this.#options.logger.info({ file: this.#editedFile }, "edit is seen; checking and loading the kinds");
      this.#work = this.#work.then(() => this.#guard(this.#apply()));
    }, QUIET_MS);
  }

  async #guard(work: Promise<void>): Promise<void> {
    const { logger, signal } = this.#options;
    await work.catch((error: unknown) => {
      if (!signal.aborted) logger.error({ err: error }, "edit was not applied");
    });
  }

  /** The first check reads the compiler's library; the later ones only what was edited. */
  async #checkFirst(): Promise<void> {
    const { logger } = this.#options;
    const startedAt = performance.now();
    const { errors, unchecked } = await this.#check();
    for (const reason of unchecked) logger.info({ reason }, "types are not checked");
    if (errors.length > 0) logger.warn({ errors }, "kinds have type errors");
    logger.info({ ms: Math.round(performance.now() - startedAt) }, "types are checked for the first time");
  }

  async #check(): Promise<TypeCheckAnswer> {
    const { logger, signal } = this.#options;
    let answer: TypeCheckAnswer = { errors: [], files: [], unchecked: [] };
    if (this.#typeCheck === undefined) return answer;
    this.#typeCheck.postMessage(undefined);
    try {
      [answer] = (await once(this.#typeCheck, "message", { signal })) as [TypeCheckAnswer];
    } catch (error) {
      signal.throwIfAborted();
      this.#typeCheck = undefined; // a thread that fails has ended, for example for lack of memory
      logger.warn({ err: error }, "types are not checked from now on");
    }
    this.#watch(answer.files);
    return answer;
  }

  async #apply(): Promise<void> {
    const { kinds: served, logger, signal } = this.#options;
    if (signal.aborted) return;
    const editedAt = this.#editedAt ?? performance.now();
    this.#editedAt = undefined;

    const { errors } = await this.#check();
    if (errors.length > 0) {
      logger.error({ errors }, "edit has type errors; the kinds before it are served");
      return;
    }
    const { kinds, problems, files } = await this.#options.load();
    this.#watch(files);
    for (const problem of problems) {
      if (this.#reported.has(describeProblem(problem))) continue;
      logger.error(
        { kind: problem.name, reason: problem.message },
        "edit cannot be loaded; the kinds before it are served",
      );
    }
    this.#reported = new Set(problems.map(describeProblem));

    const edited = kinds.filter((kind) => this.#digests.get(kindName(kind)) !== digestOf(kind));
    if (edited.length === 0 && problems.length === 0) logger.info("edit changes no served kind");
    for (const kind of edited) {
      const name = kindName(kind);
      logger.info({ kind: name }, "serving an edited kind");
      try {
        await this.#serve(kind, kinds);
        logger.info({ kind: name, ms: Math.round(performance.now() - editedAt) }, "edited kind is served");
      } catch (error) {
        if (signal.aborted) return;
        this.#digests.delete(name);
        logger.error(
          { kind: name, reason: errorMessageOf(error) },
          "edited kind is refused; the one before it is served",
        );
      }
    }
    if (problems.length === 0) {
      // a kind that is missing may only have failed to load
      const names = new Set(kinds.map(kindName));
      for (const kind of served.filter((kind) => !names.has(kindName(kind)))) await this.#withdraw(kind);
    }
    this.#options.keep(served);
  }

  async #serve(kind: AnyKind, all: readonly AnyKind[]): Promise<void> {
    const { client, host, operator, prepare, signal } = this.#options;
    signal.throwIfAborted();
    const name = kindName(kind);
    await permittedKinds(client, [kind], (_, reason) => {
      throw new TerminalError("Forbidden", reason);
    });
    await prepare(client, [kind]);
    host.serve(providersOf(all));
    await operator.serve(kind);
    await this.#replace(name, [kind]);
    this.#digests.set(name, digestOf(kind));
  }

  async #withdraw(kind: AnyKind): Promise<void> {
    const { operator, logger } = this.#options;
    const name = kindName(kind);
    operator.withdraw(name);
    await this.#replace(name, []);
    this.#digests.delete(name);
    logger.info({ kind: name }, "kind is served no more; its CRD and its objects stay");
  }

  async #replace(name: string, successor: AnyKind[]): Promise<void> {
    const { kinds, restartAdmission } = this.#options;
    const index = kinds.findIndex((kind) => kindName(kind) === name);
    const previous = kinds.splice(index === -1 ? kinds.length : index, 1, ...successor);
    const isAdmitted = ({ capabilities }: AnyKind) => capabilities.admission ?? capabilities.versions;
    if ([...previous, ...successor].some(isAdmitted)) await restartAdmission();
  }
}

/** Differs when the kind's code does, or what it declares. */
function digestOf(kind: AnyKind): string {
  return programDigest(kind) + JSON.stringify([customResourceDefinition(kind), kind.owns]);
}
