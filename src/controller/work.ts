import type { Logger } from "pino";
import type { Fence } from "../../providers/fence";
import type { LiveObject } from "../../providers/kubernetes/client";
import type { Log } from "../../providers/log";
import type { WorkContext } from "../../providers/provider";
import { shortened } from "../../providers/shortened";
import type { NewCondition } from "../../stacks/contract/condition";
import { engineWithin } from "../backend/owned-engine";
import { visible } from "../text/plain-text";
import type { ProgressReport } from "./action";
import type { Progress, Reconcile, Step } from "./context";
import { report } from "./report";

/** A reconcile whose writes are refused, wherever they are made, when its fence has ended. */
export function withinFence(reconcile: Omit<Reconcile, "work" | "progress">, fence: Fence): Reconcile {
  const { context, logger, object } = reconcile;
  const { apiVersion, kind, metadata } = object;
  const { namespace, name, uid } = metadata;
  const work: WorkContext = {
    fence,
    log: logOf(logger, "provider"),
    progress: (message) => progress.told(message),
    object: { apiVersion, kind, namespace, name, uid },
  };
  const client = context.client.within(fence);
  const [engine, writer] = [engineWithin(context.engine, work), context.writer.within(client)];
  const within = { ...reconcile, work, context: { ...context, client, engine, writer } };
  const progress = new ProgressStatus(within);
  return { ...within, progress };
}

/** The log of a kind's code. A field of its own that has the name of one of the line's is called `program.name`. */
export function logOf(logger: Logger, source: "program" | "provider"): Log {
  const write =
    (level: keyof Log) =>
    (message: string, fields: object = {}) => {
      const taken = new Set(["level", "time", "msg", "source", ...Object.keys(logger.bindings())]);
      const own = Object.entries(fields).map(([name, value]) => [taken.has(name) ? `${source}.${name}` : name, value]);
      logger[level]({ ...Object.fromEntries(own), source }, message);
    };
  return { debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") };
}

/** What takes longer than this is reported in any case; a report costs a quarter of what a small update does. */
const REPORT_AFTER_MS = 2_000;
/** What providers tell meanwhile is written so often at most. */
const TOLD_EVERY_MS = 5_000;
const MAX_TOLD = 200;

/** Reports in an object's status that an update of it, or its destroy, runs, and what its providers tell. */
class ProgressStatus implements Progress {
  object: LiveObject;
  #timer: NodeJS.Timeout | undefined;
  #written: Promise<LiveObject> | undefined;
  #conditions: readonly NewCondition[] = [];
  #told: string | undefined;
  #isOver = false;

  constructor(private readonly reconcile: Step<"object" | "facts" | "state", "writer">) {
    this.object = reconcile.object;
  }

  async begin(conditions: readonly NewCondition[], progressReport: ProgressReport): Promise<void> {
    this.#conditions = conditions;
    if (progressReport === "late") this.#timer = setTimeout(() => this.#write(), REPORT_AFTER_MS);
    else this.#write();
    if (progressReport === "before") await this.#written;
  }

  /** Takes in what a provider's call does. */
  told(message: string): void {
    this.#told = shortened(visible(message), MAX_TOLD);
    if (this.#isOver || this.#conditions.length === 0) return;
    this.#timer ??= setTimeout(() => this.#write(), TOLD_EVERY_MS);
  }

  #write(): void {
    this.#timer = undefined;
    const told = this.#told;
    const conditions = this.#conditions.map((condition) => {
      const isProgress = told !== undefined && condition.type === "Reconciling";
      return isProgress ? { ...condition, message: `${condition.message}: ${told}` } : condition;
    });
    this.#written = this.#settled().then(async (object) => {
      this.object = await report(this.reconcile, object, { conditions });
      return this.object;
    });
    this.#written.catch(() => {}); // `end` does without it
  }

  async end(): Promise<LiveObject> {
    this.#isOver = true;
    clearTimeout(this.#timer);
    return this.#settled();
  }

  /** The object as it is once no report is under way. */
  async #settled(): Promise<LiveObject> {
    await this.#written?.catch(() => undefined);
    return this.object;
  }
}
