import { once } from "node:events";
import fs from "node:fs";
import path from "node:path";
import { Worker } from "node:worker_threads";
import type { Logger } from "pino";
import { errorMessageOf } from "../../providers/errors";
import { describeProblem, type LoadedKinds, reloadKinds } from "../../stacks/catalog";
import { customResourceDefinition } from "../../stacks/contract/crd";
import { programDigest } from "../../stacks/contract/digest";
import { type AnyKind, kindName } from "../../stacks/contract/kind";
import type { TypeCheckAnswer, TypeCheckTask } from "./type-check-worker";

/** An editor writes several files, or one in several steps. */
const QUIET_MS = 100;
const SOURCE = /^[^.].*\.([cm]?[jt]sx?|json)$/;

export interface KindWatchOptions {
  /** What was loaded at first. */
  loaded: LoadedKinds;
  /** The kinds that are served. */
  served: readonly AnyKind[];
  /** Makes a kind the served one of its name. @param all what is loaded now */
  serve(kind: AnyKind, all: readonly AnyKind[]): Promise<void>;
  withdraw(kind: AnyKind): Promise<void>;
  signal: AbortSignal;
  logger: Logger;
}

/**
 * Watches the files of kinds that are not built in. After an edit, types are checked, the kinds are loaded again, and
 * those that differ are served in place of their predecessors. An edit with errors is reported and changes nothing.
 */
export class KindWatch {
  readonly #options: KindWatchOptions;
  readonly #worker: Worker | undefined;
  readonly #watchers = new Map<string, fs.FSWatcher>();
  /** Of all loads: a load that fails does not tell all its files. */
  readonly #files = new Set<string>();
  /** By the kind's name; without one, the kind is served again after the next edit. */
  readonly #served = new Map<string, { kind: AnyKind; digest: string | undefined }>();
  readonly #reported: Set<string>;
  #timer: NodeJS.Timeout | undefined;
  #editedAt: number | undefined;
  #work: Promise<void> = Promise.resolve();

  constructor(options: KindWatchOptions) {
    this.#options = options;
    const { loaded, served } = options;
    for (const kind of served) this.#served.set(kindName(kind), { kind, digest: digestOf(kind) });
    this.#reported = new Set(loaded.problems.map(describeProblem));
    this.#watch(loaded.files);
    const entries = loaded.entries.filter((file) => /\.[cm]?tsx?$/.test(file));
    if (entries.length > 0) {
      const workerData: TypeCheckTask = { entries };
      this.#worker = new Worker(path.join(__dirname, "type-check-worker.js"), { workerData });
      this.#work = this.#guard(this.#checkFirst());
    }
    const folders = [...this.#watchers.keys()];
    options.logger.info({ folders }, "watching the files of kinds");
  }

  async close(): Promise<void> {
    clearTimeout(this.#timer);
    for (const watcher of this.#watchers.values()) watcher.close();
    await this.#worker?.terminate();
    await this.#work;
  }

  /** Watches folders, not files: editors replace files. */
  #watch(files: readonly string[]): void {
    for (const file of files) this.#files.add(file);
    for (const folder of new Set(files.map((file) => path.dirname(file)))) {
      if (this.#watchers.has(folder) || !fs.existsSync(folder)) continue;
      const watcher = fs.watch(folder, (_, name) => {
        if (name === null || SOURCE.test(name)) this.#edited();
      });
      watcher.on("error", (error) => this.#options.logger.warn({ err: error, folder }, "cannot watch a folder"));
      this.#watchers.set(folder, watcher);
    }
  }

  #edited(): void {
    this.#editedAt ??= performance.now();
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#work = this.#work.then(() => this.#guard(this.#take()));
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
    if (this.#worker === undefined) return { errors: [], files: [], unchecked: [] };
    this.#worker.postMessage(undefined);
    const [answer] = (await once(this.#worker, "message", { signal: this.#options.signal })) as [TypeCheckAnswer];
    this.#watch(answer.files);
    return answer;
  }

  async #take(): Promise<void> {
    const { loaded, logger, serve, withdraw, signal } = this.#options;
    if (signal.aborted) return;
    const editedAt = this.#editedAt ?? performance.now();
    this.#editedAt = undefined;

    const { errors } = await this.#check();
    if (errors.length > 0) {
      logger.error({ errors }, "edit has type errors; the kinds before it are served");
      return;
    }
    const { kinds, problems, files } = reloadKinds([...this.#files], loaded.words);
    this.#watch(files);
    for (const { name, message } of problems) {
      if (!this.#reported.has(describeProblem({ name, message }))) {
        logger.error({ kind: name, reason: message }, "edit cannot be loaded; the kinds before it are served");
      }
    }
    this.#reported.clear();
    for (const problem of problems) this.#reported.add(describeProblem(problem));

    const differing = kinds
      .map((kind) => ({ kind, name: kindName(kind), digest: digestOf(kind) }))
      .filter(({ name, digest }) => this.#served.get(name)?.digest !== digest);
    if (differing.length === 0 && problems.length === 0) logger.info("edit changes no served kind");
    for (const { kind, name, digest } of differing) {
      if (signal.aborted) return;
      try {
        await serve(kind, kinds);
        this.#served.set(name, { kind, digest });
        logger.info({ kind: name, ms: Math.round(performance.now() - editedAt) }, "edited kind is served");
      } catch (error) {
        if (signal.aborted) return;
        const previous = this.#served.get(name);
        if (previous) previous.digest = undefined;
        const reason = errorMessageOf(error);
        logger.error({ kind: name, reason }, "edited kind is refused; the one before it is served");
      }
    }
    if (problems.length > 0) return; // a kind that is missing may only have failed to load
    for (const [name, { kind }] of this.#served) {
      if (kinds.some((other) => kindName(other) === name)) continue;
      await withdraw(kind);
      this.#served.delete(name);
      logger.info({ kind: name }, "kind is served no more; its CRD and its objects stay");
    }
  }
}

/** Differs when the kind's code does, or what it declares. */
function digestOf(kind: AnyKind): string {
  return programDigest(kind) + JSON.stringify([customResourceDefinition(kind), kind.owns]);
}
