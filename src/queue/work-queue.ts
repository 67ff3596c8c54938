import type { Logger } from "pino";
import { LONGEST_TIMER_MS } from "../../providers/in-time";
import { exponentialBackoff } from "./backoff";
import { FairQueue, type Item, Outages, type Retry } from "./fair-queue";

/** Where a queue reports what it does; durations are in seconds. */
export interface WorkQueueObserver {
  /** An item was put in the queue. */
  added(): void;
  /** An item failed and waits for its back-off. */
  retried(): void;
  depthChanged(depth: number): void;
  /** A worker took an item that had been in the queue for so long. */
  started(waitedSeconds: number): void;
  /** A worker is done with an item, well or badly. */
  finished(workedSeconds: number): void;
}

export interface WorkQueueOptions<T> {
  logger: Logger;
  /** Items of one key do not delay those of another. */
  fairnessKeyOf: (item: T) => string;
  /** Items of one group may wait for the same system, so they never hold all workers. */
  groupOf: (item: T) => string;
  observer: WorkQueueObserver;
  /** Whether an item is ours to work on; asked when it is added and again before it is worked on. */
  accepts: (item: T) => boolean;
}

/** A person waits for what a decision asks for. Items of one class take turns with those of the other. */
type QueueClass = "any" | "decision";

/** The items of a group: those in the queue, and how many run. */
interface Group<T extends Item> {
  queue: FairQueue<T>;
  running: number;
}

/** With fewer workers than this, none is kept for other groups. */
const SHARED_FROM = 4;
const BACKOFF = { baseMs: 1_000, capMs: 5 * 60_000 };

/**
 * A queue for level-based reconciling, with the semantics of client-go's work queue.
 *
 * An item is worked on by one worker at a time: the groups in rotation, in each the fairness keys in rotation, by class, the
 * items of one in the order of arrival. An item added twice before a worker takes it is worked on once; one added while a worker has
 * it is worked on again afterwards. So every request is followed by a run that starts after it.
 *
 * An item has at most one pending run, and the earliest request decides its time: `add` makes an item that waits for its
 * back-off run at once, and a request for later does not delay what is in the queue already. A worker that wants to see
 * its item again asks for it in every run.
 */
export class WorkQueue<T extends Item> {
  /** By name; the group to take from next is first. */
  readonly #groups = new Map<string, Group<T>>();
  readonly #running = new Set<string>();
  /** Items that were added while running, by id, with their class. */
  readonly #again = new Map<string, QueueClass>();
  /** Items that are added later, by id. */
  readonly #delayed = new Map<string, { timer: NodeJS.Timeout; due: number }>();
  readonly #failures = new Map<string, number>();
  readonly #outages = new Outages<T>();
  readonly #ended = Promise.withResolvers<void>();

  #concurrency = 0;
  #worker: ((item: T) => Promise<void>) | undefined;
  #shuttingDown = false;

  constructor(private readonly options: WorkQueueOptions<T>) {}

  /** Items in the queue; those that run, or are added later, do not count. */
  get depth(): number {
    return [...this.#groups.values()].reduce((sum, { queue }) => sum + queue.size, 0);
  }

  /** Items being worked on. */
  get running(): number {
    return this.#running.size;
  }

  /** Adds an item, unless it is in the queue already, in this class or in that of decisions. */
  add(item: T, queueClass: QueueClass = "any"): void {
    this.#cancelDelay(item);
    if (this.#shuttingDown) return;
    if (!this.options.accepts(item)) {
      this.abandon(item);
    } else if (this.#running.has(item.id)) {
      if (this.#again.get(item.id) !== "decision") this.#again.set(item.id, queueClass);
    } else if (queueClass === "decision" || !this.#group(item).queue.has(item)) {
      this.#enqueue(item, queueClass);
      this.#dispatch();
    }
  }

  /** Adds an item after `ms` milliseconds, unless it will run earlier anyway. */
  addAfter(item: T, ms: number): void {
    const id = item.id;
    if (this.#shuttingDown || this.#group(item).queue.has(item) || this.#again.has(id)) return;
    const due = performance.now() + ms;
    const earlier = this.#delayed.get(id);
    if (earlier !== undefined && earlier.due <= due) return;
    this.#cancelDelay(item);
    this.#delayed.set(id, { timer: setTimeout(() => this.add(item), Math.min(ms, LONGEST_TIMER_MS)), due });
  }

  /** Counts a failure of this item and adds it after its back-off: 1 s, doubled up to 5 min, ±20 %. */
  addRateLimited(item: T): void {
    const failures = this.#failures.get(item.id) ?? 0;
    this.#failures.set(item.id, failures + 1);
    this.options.observer.retried();
    this.addAfter(item, exponentialBackoff(failures, BACKOFF));
    this.#retry(this.#outages.abandoned(item));
  }

  /** The item has failed because something is missing or away: it is added when that is back, see {@link Outages}. */
  addWhenBack(item: T, dependency: string): void {
    this.forget(item);
    this.options.observer.retried();
    this.#retry(this.#outages.failed(item, dependency));
  }

  /** The item has succeeded: resets its back-off, and adds the items that wait for the same dependency. */
  endRetries(item: T): void {
    this.forget(item);
    this.#retry(this.#outages.succeeded(item));
  }

  /** Resets the back-off of an item; does not take it out of the queue. */
  forget(item: T): void {
    this.#failures.delete(item.id);
  }

  /** The item is gone, or not ours any more: besides {@link forget}, others do not wait for a try of it. */
  abandon(item: T): void {
    this.forget(item);
    this.#retry(this.#outages.abandoned(item));
  }

  /**
   * Gives items to `worker`, up to `concurrency` at a time, until `signal` or `shutDown` ends it; resolves when the last
   * worker is done. A worker handles its own errors: what it throws all the same is logged and the item rate-limited.
   */
  run(concurrency: number, worker: (item: T) => Promise<void>, signal: AbortSignal): Promise<void> {
    this.#concurrency = concurrency;
    this.#worker = worker;
    if (signal.aborted) return this.shutDown();
    const stop = () => void this.shutDown();
    signal.addEventListener("abort", stop, { once: true });
    this.#dispatch();
    return this.#ended.promise.finally(() => signal.removeEventListener("abort", stop));
  }

  /** Gives out no new work, drops what waits, and resolves when the running workers are done. */
  shutDown(): Promise<void> {
    if (!this.#shuttingDown) {
      this.#shuttingDown = true;
      for (const { timer } of this.#delayed.values()) clearTimeout(timer);
      this.#delayed.clear();
      this.#again.clear();
      for (const { queue } of this.#groups.values()) queue.clear();
      this.options.observer.depthChanged(0);
      this.#resolveWhenEnded();
    }
    return this.#ended.promise;
  }

  #enqueue(item: T, queueClass: QueueClass): void {
    const { queue } = this.#group(item);
    const isNew = !queue.has(item);
    queue.add(item, `${queueClass} ${this.options.fairnessKeyOf(item)}`);
    if (isNew) this.options.observer.added();
    this.options.observer.depthChanged(this.depth);
  }

  #retry(retries: readonly Retry<T>[]): void {
    for (const { item, afterMs } of retries) this.addAfter(item, afterMs);
  }

  #cancelDelay(item: T): void {
    clearTimeout(this.#delayed.get(item.id)?.timer);
    this.#delayed.delete(item.id);
  }

  #group(item: T): Group<T> {
    const name = this.options.groupOf(item);
    const group = this.#groups.get(name) ?? { queue: new FairQueue(this.options.fairnessKeyOf), running: 0 };
    this.#groups.set(name, group);
    return group;
  }

  /** The next item of the groups in rotation, without those that hold three quarters of the workers. */
  #take() {
    const limit = this.#concurrency < SHARED_FROM ? this.#concurrency : Math.ceil(this.#concurrency * 0.75);
    for (const [name, group] of this.#groups) {
      const next = group.running < limit ? group.queue.take() : undefined;
      if (next === undefined) continue;
      this.#groups.delete(name);
      this.#groups.set(name, group);
      return next;
    }
    return undefined;
  }

  #dispatch(): void {
    if (this.#worker === undefined) return;
    while (this.#running.size < this.#concurrency) {
      const next = this.#take();
      if (next === undefined) break;
      this.options.observer.depthChanged(this.depth);
      if (!this.options.accepts(next.item)) {
        this.abandon(next.item);
        continue;
      }
      this.#running.add(next.item.id);
      this.#group(next.item).running++;
      this.options.observer.started((performance.now() - next.since) / 1000);
      void this.#work(next.item, this.#worker);
    }
  }

  async #work(item: T, worker: (item: T) => Promise<void>): Promise<void> {
    const start = performance.now();
    try {
      await worker(item);
    } catch (error) {
      this.options.logger.error({ err: error, key: item.id }, "worker failed");
      this.addRateLimited(item);
    }
    this.#running.delete(item.id);
    this.#group(item).running--;
    this.options.observer.finished((performance.now() - start) / 1000);
    const again = this.#again.get(item.id);
    this.#again.delete(item.id);
    if (again !== undefined) this.#enqueue(item, again);
    this.#dispatch();
    this.#resolveWhenEnded();
  }

  #resolveWhenEnded(): void {
    if (this.#shuttingDown && this.running === 0) this.#ended.resolve();
  }
}
