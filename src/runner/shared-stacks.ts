import type { LiveObject } from "../../providers/kubernetes/client";
import type { AnyKind } from "../../stacks/contract/kind";
import { type StackPlace, sharedStackName } from "../../stacks/contract/shared-stack";
import type { StackEngine, UpdateResult } from "../automation/engine";
import type { Program } from "../automation/language-server";
import { destroyMembers, emptyShare, updateMembers } from "../automation/shared-stack";

/** What one object wants of its shared stack. */
export interface Request {
  /** `namespace/name` */
  key: string;
  /** The object as a cache shows it, where the API server was not asked since. */
  shown?: LiveObject | undefined;
  /** What to do: to bring about what a program registers, or to delete what is there. */
  wish: { type: "up"; program: Program; refresh: boolean } | { type: "destroy"; release: boolean };
  /** The stack that the object had to itself before its kind shared stacks; it goes when the wish is fulfilled. */
  former?: string | undefined;
}

interface Waiting extends Request {
  resolve(result: UpdateResult): void;
  reject(error: unknown): void;
}

export interface BatchesOptions {
  kind: AnyKind;
  engine: Pick<StackEngine, "up" | "destroy" | "recorded" | "forget">;
  /** Which of these objects are still as they are shown here, by their keys. */
  asShown(objects: readonly LiveObject[]): Promise<ReadonlySet<string>>;
  /** Asks for a call of {@link Batches.run} for this place; one at a time, after which the next may be asked for. */
  enqueue(place: string): void;
  /** Told of every update that ran. */
  observe(result: UpdateResult): void;
}

/** Objects in one update, at most. */
export const MAX_BATCH = 1_000;
/** More than one object that waits or is coming is a burst: it is over when none has come for so long, … */
const BURST_OVER_MS = 100;
/** … or is not waited for any longer: each start of the CLI costs as much as the update of a hundred rows. */
const LONGEST_GATHERING_MS = 1_000;

/** A shared stack as the queue names it: `partition#number`. */
export function placeName({ partition, number }: StackPlace): string {
  return `${partition}#${number}`;
}

/** The partition of a shared stack by what the queue calls it. */
export function partitionOfPlace(place: string): string {
  return locate(place).partition;
}

/**
 * Makes one update of what several objects want of the stack that they share.
 *
 * A single wish is taken up at once; those that come while an update of the stack runs wait, if need be with the rest of
 * the burst that they are part of, and are the next update together. That there is never more than one for a stack is the
 * queue's doing: it has a name for each.
 */
export class Batches {
  readonly #options: BatchesOptions;
  readonly #waiting = new Map<string, Waiting[]>();
  /** The keys of those that are about to wait, by stack. */
  readonly #coming = new Map<string, Set<string>>();
  /** For the stacks that have their turn and wait for the rest of a burst. */
  readonly #gathering = new Map<string, { since: number; lastCame: number }>();
  #stopped = false;

  constructor(options: BatchesOptions) {
    this.#options = options;
  }

  /** Says that an object is about to make a request, until it makes it or the returned function is called. */
  expect(place: string, key: string): () => void {
    const coming = this.#coming.get(place) ?? new Set();
    this.#coming.set(place, coming.add(key));
    return () => this.#arrived(place, key);
  }

  #arrived(place: string, key: string): void {
    const coming = this.#coming.get(place);
    coming?.delete(key);
    if (coming?.size === 0) this.#coming.delete(place);
  }

  /** Resolves with what the object's part of the next update came to. */
  request(place: string, request: Request): Promise<UpdateResult> {
    this.#arrived(place, request.key);
    if (this.#stopped) return Promise.resolve(interrupted(request));
    return new Promise((resolve, reject) => {
      const line = this.#waiting.get(place) ?? [];
      line.push({ ...request, resolve, reject });
      this.#waiting.set(place, line);
      const gathering = this.#gathering.get(place);
      if (gathering !== undefined) gathering.lastCame = performance.now();
      this.#options.enqueue(place);
    });
  }

  /**
   * How long to put off a stack's turn, in milliseconds, because more objects are about to come: a single one is never
   * made to wait.
   */
  gatherMs(place: string): number {
    const count = this.#waiting.get(place)?.length ?? 0;
    const isAlone = count + (this.#coming.get(place)?.size ?? 0) <= 1;
    const now = performance.now();
    const gathering = this.#gathering.get(place) ?? { since: now, lastCame: now };
    const leftMs = Math.min(gathering.lastCame + BURST_OVER_MS, gathering.since + LONGEST_GATHERING_MS) - now;
    if (count === 0 || isAlone || count >= MAX_BATCH || leftMs <= 0) {
      this.#gathering.delete(place);
      return 0;
    }
    this.#gathering.set(place, gathering);
    return leftMs;
  }

  /** Does what waits for a stack. Failures are the requests', not this call's. */
  async run(place: string, signal: AbortSignal): Promise<void> {
    const line = this.#waiting.get(place) ?? [];
    const taken = line.splice(0, MAX_BATCH);
    if (line.length === 0) this.#waiting.delete(place);
    else this.#options.enqueue(place);
    const groups = new Map<string, Waiting[]>();
    for (const waiting of taken) {
      const { type, ...how } = waiting.wish;
      const alike = type === "up" ? `up ${waiting.wish.refresh}` : `destroy ${JSON.stringify(how)}`;
      groups.set(alike, [...(groups.get(alike) ?? []), waiting]);
    }
    for (const group of groups.values()) await this.#fulfil(place, group, signal);
  }

  /** Nothing more is begun: what waits is told that it was interrupted. */
  stop(): void {
    this.#stopped = true;
    for (const place of [...this.#waiting.keys()]) this.giveUp(place);
  }

  /** What waits for a stack is told that it was interrupted: the stack is another replica's now. */
  giveUp(place: string): void {
    for (const waiting of this.#waiting.get(place) ?? []) waiting.resolve(interrupted(waiting));
    this.#waiting.delete(place);
    this.#gathering.delete(place);
  }

  async #fulfil(place: string, group: readonly Waiting[], signal: AbortSignal): Promise<void> {
    const results = await this.#updateThoseAsShown(place, group, signal).catch((error: unknown) => {
      for (const { reject } of group) reject(error);
      return undefined;
    });
    for (const waiting of group) {
      const result = results?.get(waiting.key);
      if (result === undefined) continue;
      await this.#leaveFormer(waiting, result, signal).then(waiting.resolve, waiting.reject);
    }
  }

  /** Nothing is done to what has changed meanwhile, though the cache may not show that yet. */
  async #updateThoseAsShown(
    place: string,
    group: readonly Waiting[],
    signal: AbortSignal,
  ): Promise<Map<string, UpdateResult>> {
    const unsure = group.flatMap(({ shown }) => shown ?? []);
    const asShown = unsure.length > 0 ? await this.#options.asShown(unsure) : new Set<string>();
    const isCurrent = ({ key, shown }: Waiting) => shown === undefined || asShown.has(key);
    const current = group.filter(isCurrent);
    const results = current.length > 0 ? await this.#update(place, current, signal) : new Map<string, UpdateResult>();
    for (const request of group) if (!isCurrent(request)) results.set(request.key, interrupted(request));
    return results;
  }

  #update(place: string, group: readonly Waiting[], signal: AbortSignal): Promise<Map<string, UpdateResult>> {
    const { kind, engine, observe } = this.#options;
    const stack = sharedStackName(kind, locate(place));
    const [first] = group;
    if (first?.wish.type === "destroy") {
      const { release } = first.wish;
      return destroyMembers(
        engine,
        kind,
        stack,
        group.map(({ key }) => key),
        { release, signal },
        observe,
      );
    }
    const members = group.flatMap(({ key, wish }) => (wish.type === "up" ? [{ key, program: wish.program }] : []));
    const refresh = first?.wish.type === "up" && first.wish.refresh;
    return updateMembers(engine, kind, stack, members, { refresh, signal }, observe);
  }

  /**
   * The shared stack has taken over what the former one has: it is forgotten. An object that goes before that has come
   * about is deleted from both; what only the former stack knows of is then still there.
   */
  async #leaveFormer({ former, wish }: Waiting, result: UpdateResult, signal: AbortSignal): Promise<UpdateResult> {
    const { engine, observe } = this.#options;
    if (former === undefined || result.outcome !== "succeeded") return result;
    if (wish.type === "up") {
      await engine.forget(former, signal);
      return result;
    }
    const destroyed = await engine.destroy(former, { release: wish.release, signal });
    observe(destroyed);
    return { ...destroyed, isShare: true };
  }
}

function locate(place: string): StackPlace {
  const [partition = "", number] = place.split("#");
  return { partition, number: Number(number) };
}

function interrupted({ wish }: Request): UpdateResult {
  return emptyShare(wish.type, "interrupted");
}
