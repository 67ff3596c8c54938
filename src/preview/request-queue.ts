import { once } from "node:events";
import { FairLimit } from "../http/fair-limit";
import { Refusal } from "../http/refusal";

/** Requests of one user, the running one included. */
const MAX_PER_USER = 4;

/**
 * Runs one request at a time, so that updates have priority. Users take turns: many requests of one user do not delay those of
 * others.
 */
export class RequestQueue {
  readonly #limit = new FairLimit(1);
  /** Of each user, how many run or wait. */
  readonly #requests = new Map<string, number>();

  /**
   * Runs when its turn comes. One whose caller has gone ends at once, and counts no more.
   *
   * @param read what comes before: it waits for no one, but counts as a request of the user
   * @throws Refusal 429 for a user with too many requests
   */
  async run<B, T>(
    user: string,
    signal: AbortSignal,
    read: () => Promise<B>,
    work: (body: B) => Promise<T>,
  ): Promise<T> {
    const own = this.#requests.get(user) ?? 0;
    if (own >= MAX_PER_USER) {
      throw new Refusal(429, "TooManyRequests", `${own} requests of ${user} are under way: try again later`);
    }
    this.#requests.set(user, own + 1);
    try {
      const body = await read();
      signal.throwIfAborted();
      const gone = once(signal, "abort").then((): never => signal.throwIfAborted() as never);
      const turn = this.#limit.run(user, async () => {
        signal.throwIfAborted();
        return work(body);
      });
      return await Promise.race([turn, gone]);
    } finally {
      const rest = (this.#requests.get(user) ?? 1) - 1;
      if (rest > 0) this.#requests.set(user, rest);
      else this.#requests.delete(user);
    }
  }
}
