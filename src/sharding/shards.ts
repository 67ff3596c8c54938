import { hash } from "node:crypto";
import { setMaxListeners } from "node:events";
import type { RetryableError } from "../../providers/errors";
import type { Fence } from "../../providers/fence";
import { UrgentAbort } from "../automation/interruption";
import { Replica, type ReplicaOptions, type ShardWorker } from "./replica";

/** Who is told of what happens to shards. @param includes whether what has this shard key is in the shard */
interface ShardListener {
  /** Reconcile everything in the shard. */
  acquired(includes: (shardKey: string) => boolean): void;
  /** It is released, or lost, and its work has ended. */
  released(includes: (shardKey: string) => boolean): void;
}

/** One piece of work that runs. */
interface Run {
  shard: number;
  abort: AbortController;
  ended: Promise<unknown>;
}

/** The shards that this replica holds, and the running work on them. A shard covers many shard keys. */
export class Shards implements ShardWorker {
  readonly #replica: Replica;
  readonly #runs = new Set<Run>();
  #listener: ShardListener = { acquired: () => {}, released: () => {} };

  /** @param options `allow` is called repeatedly with how long the processes of updates may run from now, in ms */
  constructor(private readonly options: Omit<ReplicaOptions, "worker"> & { allow: (ms: number) => void }) {
    this.#replica = new Replica({ ...options, worker: this });
  }

  /** Whether work on what has this shard key may begin here and now. */
  holds(shardKey: string): boolean {
    return this.#replica.holds(shardOf(shardKey, this.options.shards));
  }

  /**
   * Runs work with a fence: when the shard is lost, the work is told so by its signal
   * and none of its writes gets out.
   *
   * @returns `undefined` when the shard is not ours, or was lost meanwhile
   */
  async work<T>(
    shardKey: string,
    signal: AbortSignal,
    work: (signal: AbortSignal, fence: Fence) => Promise<T>,
  ): Promise<T | undefined> {
    const shard = shardOf(shardKey, this.options.shards);
    if (!this.#replica.holds(shard)) return undefined;
    // By hand: Node.js 24 never frees a signal of `AbortSignal.any` that someone still listens to.
    const abort = new AbortController();
    const forward = () => abort.abort(signal.reason);
    if (signal.aborted) forward();
    signal.addEventListener("abort", forward);
    const lost = new AbortController();
    setMaxListeners(0, lost.signal); // each connection to a database listens to it
    const fence: Fence = {
      check: () => {
        this.#replica.noticeExpiry();
        if (!this.#replica.mayWriteTo(shard) || lost.signal.aborted) throw leaseLost(0);
      },
      signal: lost.signal,
    };
    lost.signal.addEventListener("abort", () => abort.abort(lost.signal.reason));
    const begin = async () => {
      await Promise.resolve(); // the caller that ends it must be able to find it
      return work(abort.signal, fence);
    };
    const ended = begin().finally(() => {
      signal.removeEventListener("abort", forward);
      this.#runs.delete(run);
    });
    const run: Run = { shard, abort: lost, ended };
    this.#runs.add(run);
    try {
      const result = await ended;
      return lost.signal.aborted ? undefined : result;
    } catch (error) {
      if (lost.signal.aborted) return undefined;
      throw error;
    }
  }

  run(listener: ShardListener): Promise<void> {
    this.#listener = listener;
    return this.#replica.run();
  }

  /** Gives back what is ours, each shard when the work on it has ended. */
  leave(): void {
    this.#replica.leave();
  }

  acquired(shard: number): void {
    this.#listener.acquired(this.#inShard(shard));
  }

  async drained(shard: number): Promise<void> {
    const runs = [...this.#runs].filter((run) => run.shard === shard);
    await Promise.allSettled(runs.map(({ ended }) => ended));
    this.#listener.released(this.#inShard(shard));
  }

  async lost(graceMs: number): Promise<void> {
    const runs = [...this.#runs];
    for (const { abort } of runs) abort.abort(leaseLost(graceMs));
    await Promise.allSettled(runs.map(({ ended }) => ended));
    this.#listener.released(() => true);
  }

  renewed(ms: number): void {
    this.options.allow(ms);
  }

  #inShard(shard: number): (shardKey: string) => boolean {
    return (shardKey) => shardOf(shardKey, this.options.shards) === shard;
  }
}

/** The shard of a name: the same in every process and version. Shards are about equally large. */
export function shardOf(shardKey: string, shards: number): number {
  return shards === 1 ? 0 : hash("sha256", shardKey, "buffer").readUInt32BE() % shards;
}

function leaseLost(graceMs: number): RetryableError {
  return new UrgentAbort("LeaseLost", "this replica has lost its Lease; another replica continues", graceMs);
}
