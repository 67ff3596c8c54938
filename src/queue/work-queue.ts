import type { Logger } from "pino";
import { FairLine } from "./fair-queue";

/** Where a queue reports what it does; durations are in seconds. */
export interface WorkQueueObserver {
  /** A key was put in line. */
  added(): void;
  /** A key failed and waits for its back-off. */
  retried(): void;
  /** The number of keys in line changed. */
  depthChanged(depth: number): void;
  /** A worker took a key that had been in line for so long. */
  started(waitedSeconds: number): void;
  /** A worker is done with a key, well or badly. */
  finished(workedSeconds: number): void;
}

/** How a key takes part. */
export interface Lane {
  /** Whose turn it is: keys of one group come one after the other, groups in turns. */
  group: string;
  /** Whether its worker does little but wait for the work of another key, so that it needs no place among the workers. */
  waits: boolean;
}

export interface WorkQueueOptions {
  logger: Logger;
  /** By default all keys work, and are one group. */
  laneOf?: (key: string) => Lane;
  observer?: WorkQueueObserver;
  /** Whether a key is ours to work on; asked when it is added and again before it is worked on. By default all are. */
  accepts?: (key: string) => boolean;
  /** A number from 0 to 1, for the jitter. */
  random?: () => number;
}

const BACKOFF = { baseMs: 1_000, capMs: 5 * 60_000 };
const ONE_LANE: Lane = { group: "", waits: false };
/** Keys that wait for the work of others, at most; several times what one of those works on at once. */
const MAX_WAITING_WORKERS = 4_000;
/** Longer timers overflow and fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/**
 * The time to wait after `failures` earlier failures: doubled for each, capped, then spread by ±20 % so that what
 * failed together does not come back together.
 */
export function exponentialBackoff(
  failures: number,
  { baseMs, capMs }: { baseMs: number; capMs: number },
  random: () => number = Math.random,
): number {
  return Math.round(Math.min(capMs, baseMs * 2 ** failures) * (0.8 + 0.4 * random()));
}

/**
 * A queue of names for level-based reconciling, with the semantics of client-go's work queue.
 *
 * A key is worked on by one worker at a time, groups of keys in turns, those of a group in the order of arrival. A key added twice before a worker takes it is
 * worked on once; a key added while a worker has it is worked on again afterwards. So every request is followed by a
 * run that starts after it.
 *
 * A key has at most one pending run, and the earliest request decides its time: `add` makes a key that waits for its
 * back-off run at once, and a request for later does not delay what is in line already. A worker that wants to see
 * its key again asks for it in every run.
 */
export class WorkQueue {
  readonly #logger: Logger;
  readonly #observer: WorkQueueObserver | undefined;
  readonly #random: () => number;
  readonly #accepts: (key: string) => boolean;

  readonly #laneOf: (key: string) => Lane;
  /** Keys in line: those that need one of the workers, and those that do not. */
  readonly #lines: { works: FairLine; waits: FairLine };
  readonly #running = { works: new Set<string>(), waits: new Set<string>() };
  /** Keys that were added while running. */
  readonly #again = new Set<string>();
  readonly #waiting = new Map<string, { timer: NodeJS.Timeout; due: number }>();
  readonly #failures = new Map<string, number>();
  readonly #drained: Promise<void>;
  #resolveDrained!: () => void;

  #worker: ((key: string) => Promise<void>) | undefined;
  #concurrency = 0;
  #draining = false;

  constructor({
    logger,
    observer,
    laneOf = () => ONE_LANE,
    accepts = () => true,
    random = Math.random,
  }: WorkQueueOptions) {
    this.#logger = logger;
    this.#laneOf = laneOf;
    const groupOf = (key: string) => laneOf(key).group;
    this.#lines = { works: new FairLine(groupOf), waits: new FairLine(groupOf) };
    this.#observer = observer;
    this.#random = random;
    this.#accepts = accepts;
    this.#drained = new Promise((resolve) => {
      this.#resolveDrained = resolve;
    });
  }

  /** Keys in line; those that run, or wait for a time, do not count. */
  get depth(): number {
    return this.#lines.works.size + this.#lines.waits.size;
  }

  /** Keys being worked on. */
  get running(): number {
    return this.#running.works.size + this.#running.waits.size;
  }

  /** Puts a key in line, unless it is there already. */
  add(key: string): void {
    this.#stopWaiting(key);
    if (this.#draining || !this.#accepts(key)) return;
    const way = this.#wayOf(key);
    if (this.#running[way].has(key)) {
      this.#again.add(key);
    } else if (!this.#lines[way].has(key)) {
      this.#putInLine(key);
      this.#dispatch();
    }
  }

  /** Adds a key after `ms` milliseconds, unless it will run earlier anyway. */
  addAfter(key: string, ms: number): void {
    if (this.#draining || this.#lines[this.#wayOf(key)].has(key) || this.#again.has(key)) return;
    const due = performance.now() + ms;
    const earlier = this.#waiting.get(key);
    if (earlier !== undefined && earlier.due <= due) return;
    this.#stopWaiting(key);
    this.#waiting.set(key, { timer: setTimeout(() => this.add(key), Math.min(ms, LONGEST_TIMER_MS)), due });
  }

  /** Counts a failure of this key and adds it after its back-off: 1 s, doubled up to 5 min, ±20 %. Returns the ms. */
  addRateLimited(key: string): number {
    const failures = this.failures(key);
    this.#failures.set(key, failures + 1);
    const ms = exponentialBackoff(failures, BACKOFF, this.#random);
    this.#observer?.retried();
    this.addAfter(key, ms);
    return ms;
  }

  /** Resets the back-off of a key; does not take it out of the line. */
  forget(key: string): void {
    this.#failures.delete(key);
  }

  /** How often `addRateLimited` was called for this key since it was last forgotten. */
  failures(key: string): number {
    return this.#failures.get(key) ?? 0;
  }

  /**
   * Gives keys to `worker`, up to `concurrency` at a time, until `signal` or `drain` ends it; resolves when the last
   * worker is done. A worker handles its own errors: what it throws all the same is logged and the key rate-limited.
   */
  run(concurrency: number, worker: (key: string) => Promise<void>, signal: AbortSignal): Promise<void> {
    this.#concurrency = concurrency;
    this.#worker = worker;
    if (signal.aborted) return this.drain();
    const stop = () => void this.drain();
    signal.addEventListener("abort", stop, { once: true });
    this.#dispatch();
    return this.#drained.finally(() => signal.removeEventListener("abort", stop));
  }

  /** Gives out no new work, drops what waits, and resolves when the running workers are done. */
  drain(): Promise<void> {
    if (!this.#draining) {
      this.#draining = true;
      for (const key of [...this.#waiting.keys()]) this.#stopWaiting(key);
      this.#again.clear();
      this.#lines.works.clear();
      this.#lines.waits.clear();
      this.#observer?.depthChanged(0);
      this.#resolveWhenDrained();
    }
    return this.#drained;
  }

  #putInLine(key: string): void {
    this.#lines[this.#wayOf(key)].add(key);
    this.#observer?.added();
    this.#observer?.depthChanged(this.depth);
  }

  #stopWaiting(key: string): void {
    clearTimeout(this.#waiting.get(key)?.timer);
    this.#waiting.delete(key);
  }

  #wayOf(key: string): "works" | "waits" {
    return this.#laneOf(key).waits ? "waits" : "works";
  }

  #dispatch(): void {
    if (this.#worker === undefined) return;
    for (const way of ["works", "waits"] as const) {
      const places = way === "works" ? this.#concurrency : MAX_WAITING_WORKERS;
      while (this.#running[way].size < places) {
        const next = this.#lines[way].take();
        if (next === undefined) break;
        this.#observer?.depthChanged(this.depth);
        if (!this.#accepts(next.key)) continue;
        this.#running[way].add(next.key);
        this.#observer?.started((performance.now() - next.since) / 1000);
        void this.#work(next.key, this.#worker);
      }
    }
  }

  async #work(key: string, worker: (key: string) => Promise<void>): Promise<void> {
    const start = performance.now();
    try {
      await worker(key);
    } catch (error) {
      this.#logger.error({ err: error, key }, "worker failed");
      this.addRateLimited(key);
    }
    this.#running[this.#wayOf(key)].delete(key);
    this.#observer?.finished((performance.now() - start) / 1000);
    if (this.#again.delete(key)) this.#putInLine(key);
    this.#dispatch();
    this.#resolveWhenDrained();
  }

  #resolveWhenDrained(): void {
    if (this.#draining && this.running === 0) this.#resolveDrained();
  }
}
