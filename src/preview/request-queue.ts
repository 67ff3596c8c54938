import { Refusal } from "../http/refusal";

export interface QueueLimits {
  /** Requests that wait for the running one. */
  waiting: number;
  /** Requests of one user, the running one included. */
  perUser: number;
}

/** One request at a time, so that previews leave the machine to updates; few may wait, and not all for one user. */
export class RequestQueue {
  readonly #limits: QueueLimits;
  readonly #users = new Map<string, number>();
  #waiting = 0;
  #last: Promise<unknown> = Promise.resolve();

  constructor(limits: QueueLimits) {
    this.#limits = limits;
  }

  /**
   * Runs when all that came before has ended.
   *
   * @throws Refusal 429 for a user with too many requests, 503 when too many wait
   */
  async run<T>(user: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    const own = this.#users.get(user) ?? 0;
    if (own >= this.#limits.perUser) {
      throw new Refusal(429, "TooManyRequests", `${own} requests of ${user} are under way: try again later`);
    }
    if (this.#waiting > this.#limits.waiting) {
      throw new Refusal(503, "ServiceUnavailable", "too many requests wait: try again later");
    }
    this.#users.set(user, own + 1);
    this.#waiting++;
    const result = this.#last.then(() => {
      signal.throwIfAborted(); // who has gone is not waited for
      return work();
    });
    this.#last = result.catch(() => {});
    try {
      return await result;
    } finally {
      this.#waiting--;
      const left = (this.#users.get(user) ?? 1) - 1;
      if (left === 0) this.#users.delete(user);
      else this.#users.set(user, left);
    }
  }
}
