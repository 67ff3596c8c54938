import type { LiveObject } from "../../providers/kubernetes/client";
import type { AnyKind } from "../../stacks/contract/kind";
import { type StackAssignment, sharedStackName } from "../../stacks/contract/shared-stack";
import type { UpdateResult } from "../automation/engine";
import type { Program } from "../automation/language-server";
import { destroyMembers, partialResult, updateMembers } from "./members";
import type { RunnerEngine } from "./stack-runner";

/** What one object wants of its shared stack. */
export interface Request {
  /** `namespace/name` */
  key: string;
  /** The object as a cache shows it, where the API server was not asked since. */
  cached?: LiveObject | undefined;
  operation: { type: "up"; program: Program; refresh: boolean } | { type: "destroy"; release: boolean };
  /** The stack that the object had to itself before its kind shared stacks; it is removed after the update. */
  former?: string | undefined;
}

interface Waiting extends Request {
  resolve(result: UpdateResult): void;
  reject(error: unknown): void;
}

/** An object that is about to make a request. */
export interface Participant {
  request(request: Omit<Request, "key">): Promise<UpdateResult>;
  /** It makes none. */
  leave(): void;
}

export interface BatchesOptions {
  kind: AnyKind;
  engine: RunnerEngine;
  /** Which of these objects are still as they are here, by their keys. */
  findFresh(objects: readonly LiveObject[]): Promise<ReadonlySet<string>>;
  /** Asks for a call of {@link Batches.run} for this stack; one at a time. */
  enqueue(stack: StackAssignment): void;
  /** Told of every update that ran. */
  observe(result: UpdateResult): void;
}

/** Objects in one update, at most. */
export const MAX_BATCH = 1_000;
/** More than one object that waits or is about to is a burst: it is over when none has come for so long, … */
const BURST_OVER_MS = 100;
/** … or is not waited for any longer: each update reads and writes its whole stack. */
const LONGEST_GATHERING_MS = 1_000;

/** Identifies a shared stack among those of its kind. */
export function assignmentId({ partition, number }: StackAssignment): string {
  return `${partition}#${number}`;
}

/**
 * Makes one update of what several objects want of the stack that they share.
 *
 * A single request is taken up at once; those that arrive while an update of the stack runs wait, if need be with the
 * rest of the burst that they are part of, and are the next update together.
 */
export class Batches {
  readonly #options: BatchesOptions;
  readonly #waiting = new Map<string, Waiting[]>();
  /** Those that are about to make a request, by stack. */
  readonly #coming = new Map<string, Set<Participant>>();
  /** Stacks that wait for the rest of a burst. */
  readonly #gathering = new Map<string, { since: number; lastCame: number }>();
  #stopped = false;

  constructor(options: BatchesOptions) {
    this.#options = options;
  }

  /** Notes that an object is about to make a request. */
  join(stack: StackAssignment, key: string): Participant {
    const id = assignmentId(stack);
    const participant: Participant = {
      request: (request) => {
        participant.leave();
        return this.#request(stack, { ...request, key });
      },
      leave: () => {
        const coming = this.#coming.get(id);
        coming?.delete(participant);
        if (coming?.size === 0) this.#coming.delete(id);
      },
    };
    const coming = this.#coming.get(id) ?? new Set();
    this.#coming.set(id, coming.add(participant));
    return participant;
  }

  #request(stack: StackAssignment, request: Request): Promise<UpdateResult> {
    if (this.#stopped) return Promise.resolve(interrupted(request));
    const id = assignmentId(stack);
    return new Promise((resolve, reject) => {
      const waiting = this.#waiting.get(id) ?? [];
      waiting.push({ ...request, resolve, reject });
      this.#waiting.set(id, waiting);
      const gathering = this.#gathering.get(id);
      if (gathering !== undefined) gathering.lastCame = performance.now();
      this.#options.enqueue(stack);
    });
  }

  /**
   * How long to put off a stack's update, in ms, because more objects are about to join it: a single one never waits.
   */
  gatherMs(stack: StackAssignment): number {
    const id = assignmentId(stack);
    const count = this.#waiting.get(id)?.length ?? 0;
    const isAlone = count + (this.#coming.get(id)?.size ?? 0) <= 1;
    const now = performance.now();
    const gathering = this.#gathering.get(id) ?? { since: now, lastCame: now };
    const leftMs = Math.min(gathering.lastCame + BURST_OVER_MS, gathering.since + LONGEST_GATHERING_MS) - now;
    if (count === 0 || isAlone || count >= MAX_BATCH || leftMs <= 0) {
      this.#gathering.delete(id);
      return 0;
    }
    this.#gathering.set(id, gathering);
    return leftMs;
  }

  /** Does what waits for a stack. Failures are the requests', not this call's. */
  async run(stack: StackAssignment, signal: AbortSignal): Promise<void> {
    const id = assignmentId(stack);
    const waiting = this.#waiting.get(id) ?? [];
    const taken = waiting.splice(0, MAX_BATCH);
    if (waiting.length === 0) this.#waiting.delete(id);
    else this.#options.enqueue(stack);
    const alike = new Map<string, Waiting[]>();
    for (const request of taken) {
      const { type } = request.operation;
      const flag = type === "up" ? request.operation.refresh : request.operation.release;
      alike.set(`${type} ${flag}`, [...(alike.get(`${type} ${flag}`) ?? []), request]);
    }
    for (const requests of alike.values()) await this.#fulfil(stack, requests, signal);
  }

  /** Begins nothing more: what waits is interrupted. */
  stop(): void {
    this.#stopped = true;
    for (const id of [...this.#waiting.keys()]) this.#interrupt(id);
  }

  /** Interrupts what waits for a stack: another replica works on it now. */
  interrupt(stack: StackAssignment): void {
    this.#interrupt(assignmentId(stack));
  }

  #interrupt(id: string): void {
    for (const waiting of this.#waiting.get(id) ?? []) waiting.resolve(interrupted(waiting));
    this.#waiting.delete(id);
    this.#gathering.delete(id);
  }

  async #fulfil(stack: StackAssignment, requests: readonly Waiting[], signal: AbortSignal): Promise<void> {
    const results = await this.#updateFresh(stack, requests, signal).catch((error: unknown) => {
      for (const { reject } of requests) reject(error);
      return undefined;
    });
    for (const waiting of requests) {
      const result = results?.get(waiting.key);
      if (result === undefined) continue;
      await this.#leaveFormer(waiting, result, signal).then(waiting.resolve, waiting.reject);
    }
  }

  /** Nothing is done to what has changed meanwhile, though the cache may not show that yet. */
  async #updateFresh(
    stack: StackAssignment,
    requests: readonly Waiting[],
    signal: AbortSignal,
  ): Promise<Map<string, UpdateResult>> {
    const unverified = requests.flatMap(({ cached }) => cached ?? []);
    const verified = unverified.length > 0 ? await this.#options.findFresh(unverified) : new Set<string>();
    const isFresh = ({ key, cached }: Waiting) => cached === undefined || verified.has(key);
    const fresh = requests.filter(isFresh);
    const results = fresh.length > 0 ? await this.#update(stack, fresh, signal) : new Map<string, UpdateResult>();
    for (const request of requests) if (!isFresh(request)) results.set(request.key, interrupted(request));
    return results;
  }

  #update(
    assignment: StackAssignment,
    requests: readonly Waiting[],
    signal: AbortSignal,
  ): Promise<Map<string, UpdateResult>> {
    const { kind, engine, observe } = this.#options;
    const stack = sharedStackName(kind, assignment);
    const operation = requests[0]?.operation;
    if (operation?.type === "destroy") {
      const keys = requests.map(({ key }) => key);
      return destroyMembers(engine, kind, stack, keys, { release: operation.release, signal }, observe);
    }
    const members = requests.flatMap(({ key, operation }) =>
      operation.type === "up" ? [{ key, program: operation.program }] : [],
    );
    return updateMembers(engine, kind, stack, members, { refresh: operation?.refresh ?? false, signal }, observe);
  }

  /**
   * The shared stack has taken over what the former one has, which is then forgotten. An object that is deleted before
   * that is deleted from both; what only the former stack knows is then still there.
   */
  async #leaveFormer({ former, operation }: Waiting, result: UpdateResult, signal: AbortSignal): Promise<UpdateResult> {
    const { engine, observe } = this.#options;
    if (former === undefined || result.outcome !== "succeeded") return result;
    if (operation.type === "up") {
      await engine.forget(former, signal);
      return result;
    }
    const destroyed = await engine.destroy(former, { release: operation.release, signal });
    observe(destroyed);
    return { ...destroyed, isPartial: true };
  }
}

function interrupted({ operation }: Pick<Request, "operation">): UpdateResult {
  return partialResult(operation.type, "interrupted");
}
