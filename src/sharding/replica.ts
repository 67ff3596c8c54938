import type { Logger } from "pino";
import { expire, LeaseConflict, type LeaseRecord, type LeaseStore, renewLease } from "./lease-store";
import {
  type Action,
  killAfterMs,
  type LeaseTiming,
  type ReplicaState,
  SESSION_PREFIX,
  SHARD_PREFIX,
  type ShardingConfig,
  step,
  untilNextTry,
} from "./step";

/** Who does the work of the shards. */
export interface ShardWorker {
  /** A shard is ours from now on. */
  acquired(shard: number): void;
  /** Resolves when the running work on a shard is done; no new work begins. */
  drained(shard: number): Promise<void>;
  /** No shard is ours any more. Stops all work within `graceMs`; resolves when it has. */
  lost(graceMs: number): Promise<void>;
  /** The Lease was renewed; without another renewal, nothing of ours may run after `ms` milliseconds. */
  renewed(ms: number): void;
}

export interface ReplicaOptions extends ShardingConfig {
  store: LeaseStore;
  worker: ShardWorker;
  timing: LeaseTiming;
  logger: Logger;
  /** Milliseconds on a monotonic clock, which also counts while the process is stopped. */
  now?: () => number;
  /** Makes a name that no other session of any replica has. */
  sessionName: () => string;
  onTransition?: (transition: "acquired" | "released" | "lost", held: number) => void;
}

interface Session {
  record: LeaseRecord;
  /** When the renewal that counts was sent off. */
  renewedAt: number;
}

/**
 * One of several replicas that share the work of one operator.
 *
 * Each replica renews a Lease of its own, its session. Each shard is a Lease that names the holding session.
 * A session that does not change for the Lease's duration, by the observer's clock, is declared dead by a
 * compare-and-swap, so it cannot be renewed any more, and its shards are free. No clocks are compared, as in client-go's
 * `leaderelection` (k8s.io/client-go/tools/leaderelection), where each Lease would be renewed by itself.
 *
 * A replica's session ends at the renewal deadline, counted from when the last successful renewal was *sent*. The deadline
 * is shorter than the Lease's duration; by then no work of the session may run any more.
 */
export class Replica {
  readonly #held = new Map<number, LeaseRecord>();
  readonly #yielding = new Map<number, boolean>();
  readonly #state: ReplicaState = {
    held: this.#held,
    yielding: this.#yielding,
    seen: new Map(),
    standsBack: false,
    leaving: false,
  };
  #session: Session | undefined;
  /** A session that is over, and may hold Leases. */
  #former: LeaseRecord | undefined;
  /** Resolves when the work under that session has ended. */
  #ending: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** Ends the pause between two ticks. */
  #wake = () => {};

  constructor(private readonly options: ReplicaOptions) {}

  /** Whether nothing is ours, nor will be. */
  get hasLeft(): boolean {
    return this.#state.leaving && this.#held.size === 0 && this.#ending === undefined;
  }

  /** Whether work on a shard may begin. */
  holds(shard: number): boolean {
    return this.#isValid() && this.#held.has(shard) && !this.#yielding.has(shard);
  }

  /** Whether work on a shard may continue. */
  mayWriteTo(shard: number): boolean {
    return this.#isValid() && this.#held.has(shard);
  }

  /** After the deadline, all work is aborted before this returns. */
  noticeExpiry(): void {
    if (this.#session !== undefined && !this.#isValid()) this.#lose("it could not be renewed in time", this.endsInMs);
  }

  /** Time until the last running work must have ended, in ms, unless a renewal follows. */
  get endsInMs(): number {
    return Math.max(0, this.#msUntil(killAfterMs(this.options.timing)));
  }

  /** Takes part until {@link leave} was called and all is given back. */
  async run(): Promise<void> {
    const { logger, timing } = this.options;
    while (!this.hasLeft) {
      const pause = Promise.withResolvers<void>();
      this.#wake = pause.resolve; // also during the tick
      await this.tick().catch((error: unknown) => logger.warn({ err: error }, "Leases cannot be read or written"));
      if (this.hasLeft) break;
      setTimeout(pause.resolve, untilNextTry(timing)).unref();
      await pause.promise;
    }
    await this.close().catch((error: unknown) => logger.warn({ err: error }, "failed to delete the session Lease"));
  }

  /**
   * Renews the session, looks at the Leases, and takes or gives back shards: all writes are made here, one by one.
   *
   * @throws ApiError when the API server cannot be reached; nothing has to be done about it
   */
  async tick(): Promise<void> {
    this.noticeExpiry();
    if (this.#ending !== undefined || this.hasLeft) return;
    const session = await this.#renew();
    if (session === undefined) return;
    await this.#releaseDrained(session);
    const leases = await this.options.store.list();
    if (!this.#isCurrent(session)) return;
    const { actions, ...known } = step(this.#state, session.record, leases, this.#now(), this.options);
    Object.assign(this.#state, known);
    for (const action of actions) {
      if (!this.#isCurrent(session) || !(await this.#perform(action, session))) return;
    }
  }

  /** From now on takes nothing, and gives back each shard when its work is done. */
  leave(): void {
    this.#state.leaving = true;
    this.#state.standsBack = true;
    for (const shard of this.#held.keys()) this.#yield(shard);
    this.#wake();
  }

  /** Deletes the Lease of the session, after all shards were released. */
  async close(): Promise<void> {
    clearTimeout(this.#timer);
    for (const record of [this.#session?.record, this.#former]) {
      if (record !== undefined) await this.options.store.remove(record);
    }
    this.#session = undefined;
    this.#former = undefined;
  }

  /** @returns the session, when it was renewed in time */
  async #renew(): Promise<Session | undefined> {
    const { store, timing, shards, sessionName, worker } = this.options;
    const sentAt = this.#now();
    const wanted = { shards: this.#state.standsBack ? undefined : shards, leaseDurationMs: timing.leaseDurationMs };
    let session = this.#session;
    if (session === undefined) {
      if (this.#former !== undefined) await store.remove(this.#former); // its work has ended; its shards are free
      this.#former = undefined;
      const name = SESSION_PREFIX + sessionName();
      session = { record: await store.create(name, { holder: name, ...wanted }), renewedAt: sentAt };
      this.#session = session;
    } else {
      const record = await renewLease(store, session.record, wanted);
      if (session !== this.#session) return undefined;
      if (record === undefined) {
        this.#lose("another replica has declared this one dead", 0);
        return undefined;
      }
      session.record = record;
      session.renewedAt = sentAt;
    }
    if (!this.#isValid()) return undefined;
    worker.renewed(this.endsInMs);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.noticeExpiry(), this.#msUntil(timing.renewDeadlineMs) + 1).unref();
    return session;
  }

  /** @returns whether the actions that follow still apply */
  async #perform(action: Action, session: Session): Promise<boolean> {
    switch (action.type) {
      case "expire":
        return expire(this.options, action.session, action.silentMs);
      case "lose":
        this.#lose(action.reason, 0);
        break;
      case "hold":
        this.#hold(action.shard, action.record);
        break;
      case "released":
        this.#released(action.shard);
        break;
      case "yield":
        this.#yield(action.shard);
        break;
      case "standBack": {
        const facts = { shards: this.options.shards, others: action.others };
        this.options.logger.warn(facts, "waits for replicas with another number of shards to leave");
        break;
      }
      case "acquire":
        await this.#acquire(session, action);
    }
    return true;
  }

  async #acquire(session: Session, { count, candidates }: Extract<Action, { type: "acquire" }>): Promise<void> {
    const { store } = this.options;
    const holder = session.record.name;
    let missing = count;
    for (const { shard, record } of candidates) {
      if (missing <= 0) return;
      try {
        const taken = await (record === undefined
          ? store.create(`${SHARD_PREFIX}${shard}`, { holder, transitions: 0 })
          : store.update(record, { holder, transitions: record.transitions + 1 }));
        if (!this.#isCurrent(session)) return;
        this.#hold(shard, taken);
        missing--;
      } catch (error) {
        if (!(error instanceof LeaseConflict)) throw error; // else another replica was quicker
      }
      if (this.#mustRenew(session)) return this.#wake(); // the next tick continues
    }
  }

  #hold(shard: number, record: LeaseRecord): void {
    const { worker, logger, onTransition } = this.options;
    const isNew = !this.#held.has(shard);
    this.#held.set(shard, record);
    if (!isNew) return;
    logger.info({ shard, holder: record.holder, transitions: record.transitions }, "shard acquired");
    onTransition?.("acquired", this.#held.size);
    worker.acquired(shard);
    if (this.#state.leaving) this.#yield(shard);
  }

  #yield(shard: number): void {
    if (this.#yielding.has(shard)) return;
    const session = this.#session;
    this.#yielding.set(shard, false);
    void this.options.worker.drained(shard).then(() => {
      if (session === undefined || !this.#isCurrent(session)) return;
      this.#yielding.set(shard, true);
      this.#wake();
    });
  }

  /** Clears the holders, so that others take the shards at once. When the outcome is unknown, it is tried again. */
  async #releaseDrained(session: Session): Promise<void> {
    const { store, logger } = this.options;
    for (const [shard, isDrained] of [...this.#yielding]) {
      const record = this.#held.get(shard);
      if (!isDrained || record === undefined) continue;
      try {
        await store.update(record, { holder: undefined });
        if (!this.#isCurrent(session)) return;
        this.#released(shard);
      } catch (error) {
        logger.info({ err: error, shard }, "shard not released yet");
      }
      if (this.#mustRenew(session)) return this.#wake();
    }
  }

  #released(shard: number): void {
    this.#held.delete(shard);
    this.#yielding.delete(shard);
    this.options.logger.info({ shard }, "shard released");
    this.options.onTransition?.("released", this.#held.size);
  }

  #lose(reason: string, graceMs: number): void {
    const { worker, logger, onTransition } = this.options;
    logger.error({ reason, shards: [...this.#held.keys()], graceMs }, "lost the Lease, stopping all work");
    this.#former = this.#session?.record;
    this.#session = undefined;
    this.#held.clear();
    this.#yielding.clear();
    clearTimeout(this.#timer);
    this.#ending = worker.lost(graceMs).then(() => {
      this.#ending = undefined;
      this.#wake();
    });
    onTransition?.("lost", 0);
  }

  #now(): number {
    return this.options.now?.() ?? performance.now();
  }

  /** Time until `sinceRenewalMs` after the last renewal, in ms; 0 without a session. */
  #msUntil(sinceRenewalMs: number): number {
    return this.#session === undefined ? 0 : this.#session.renewedAt + sinceRenewalMs - this.#now();
  }

  /** Whether our session is valid, though its end may not have been noticed yet. */
  #isValid(): boolean {
    return this.#msUntil(this.options.timing.renewDeadlineMs) > 0;
  }

  /** Whether the session is to be renewed before more is written. */
  #mustRenew({ renewedAt }: Session): boolean {
    return this.#now() - renewedAt >= this.options.timing.retryPeriodMs;
  }

  #isCurrent(session: Session): boolean {
    return this.#isValid() && this.#session === session;
  }
}
