import pLimit from "p-limit";
import { Refusal } from "../http/refusal";

/** Requests that wait for the running one. */
const MAX_WAITING = 16;
/** Requests of one user, the running one included. */
const MAX_PER_USER = 4;

/** Runs one request at a time, so that updates have priority. Limits how many requests wait, in all and per user. */
export class RequestQueue {
  readonly #limit = pLimit(1);
  /** Those that run or wait. */
  readonly #requests = new Set<{ user: string }>();

  /**
   * Runs when all earlier requests have ended.
   *
   * @throws Refusal 429 for a user with too many requests, 503 when too many wait
   */
  async run<T>(user: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    const own = [...this.#requests].filter((request) => request.user === user).length;
    if (own >= MAX_PER_USER) {
      throw new Refusal(429, "TooManyRequests", `${own} requests of ${user} are under way: try again later`);
    }
    if (this.#requests.size > MAX_WAITING) {
      throw new Refusal(503, "ServiceUnavailable", "too many requests wait: try again later");
    }
    const request = { user };
    this.#requests.add(request);
    try {
      return await this.#limit(() => {
        signal.throwIfAborted(); // the caller has gone
        return work();
      });
    } finally {
      this.#requests.delete(request);
    }
  }
}
