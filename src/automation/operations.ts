import pLimit, { type LimitFunction } from "p-limit";
import { RetryableError } from "../../providers/errors";
import type { ProviderHost, ProviderSession } from "../../providers/host/session";
import type { DestroyOptions, PreviewResult, StackEngine, StackPreviewOptions, UpOptions, UpResult } from "./engine";
import { assess, type Ran, reportOf } from "./event-log";
import { plannedChanges } from "./planned-changes";
import type { Program } from "./program";

export interface OperationsOptions {
  host: ProviderHost;
  /** After this long an operation is interrupted. */
  timeoutMs: number;
  /** Previews that run at the same time, of all stacks; 1 by default. */
  previewsAtOnce?: number;
}

type Method = "up" | "destroy" | "preview" | "previewDestroy";

export interface Operation {
  method: Method;
  stack: string;
  program: Program | undefined;
  options: UpOptions & DestroyOptions & StackPreviewOptions;
}

/** The common part of all implementations of {@link StackEngine}: one operation writes a stack at a time, and has a result. */
export abstract class Operations implements Pick<StackEngine, "up" | "preview" | "destroy" | "previewDestroy"> {
  readonly #previews: LimitFunction;
  readonly #writing = new Set<string>();

  constructor(readonly options: OperationsOptions) {
    this.#previews = pLimit(options.previewsAtOnce ?? 1);
  }

  protected openSession({ method, options }: Operation): ProviderSession {
    const { signal, stop, release, observed, snapshot, context } = options;
    const keepsGiven = method === "preview";
    return this.options.host.openSession({ release, observed, snapshot, context, signals: [signal, stop], keepsGiven });
  }

  /** @throws RetryableError `Locked`, `Unreadable`, `NoEngine` */
  protected abstract run(operation: Operation): Promise<Ran>;

  up(stack: string, program: Program, options: UpOptions = {}): Promise<UpResult> {
    return this.#write("up", stack, options, program);
  }

  destroy(stack: string, options: DestroyOptions = {}): Promise<UpResult> {
    return this.#write("destroy", stack, options);
  }

  preview(stack: string, program: Program, options: StackPreviewOptions = {}): Promise<PreviewResult> {
    return this.#preview("preview", stack, options, program);
  }

  previewDestroy(stack: string, options: StackPreviewOptions = {}): Promise<PreviewResult> {
    return this.#preview("previewDestroy", stack, options);
  }

  async #write(
    method: "up" | "destroy",
    stack: string,
    options: Operation["options"],
    program?: Program,
  ): Promise<UpResult> {
    if (this.#writing.has(stack)) {
      throw new RetryableError("Locked", `the stack ${stack} is being worked on by this process`);
    }
    this.#writing.add(stack);
    const startTime = new Date();
    try {
      const ran = await this.run({ method, stack, program, options });
      options.context?.fence.check(); // whatever ended it, it is another's stack now
      const report = reportOf(ran.events ?? []);
      const { changes: resourceChanges, resources, deleted, gone } = report;
      const { succeeded, failures, restDone } = assess(ran, report, this.options.timeoutMs);
      const result = succeeded ? "succeeded" : "failed";
      return {
        summary: { kind: method === "up" ? "update" : method, startTime, endTime: new Date(), result, resourceChanges },
        found: ran.outcome === undefined || ran.outcome.exists || ran.outcome.destroyed === true,
        interrupted: !succeeded && ran.ended.interrupted === "aborted",
        unrecorded: ran.unrecorded === true || ran.ended.cutOff === true || ran.ended.error !== undefined,
        failures,
        restDone,
        resources,
        deleted,
        gone,
      };
    } finally {
      this.#writing.delete(stack);
    }
  }

  async #preview(
    method: Method,
    stack: string,
    options: StackPreviewOptions,
    program?: Program,
  ): Promise<PreviewResult> {
    const ran = await this.#previews(() => this.run({ method, stack, program, options }));
    if (ran.ended.interrupted === "aborted") throw new RetryableError("Interrupted", "the preview was interrupted");
    const { events = [], outcome } = ran;
    const { failures } = assess(ran, reportOf(events), this.options.timeoutMs);
    const plan = outcome?.plan;
    const changes = plannedChanges(events, ran.given);
    const held = plan && { plan, observed: ran.observed ?? new Map() };
    return { exists: outcome?.exists ?? false, changes, failures, ...held };
  }
}
