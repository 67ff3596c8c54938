/** More repairs in a minute than this are a conflict with another controller, not an accident. */
export const MAX_REPAIRS_PER_MINUTE = 6;
const WINDOW_MS = 60_000;
const FIRST_DELAY_MS = 10_000;
const SLOWEST_MS = 5 * 60_000;

/**
 * How often one object was repaired, and how long the next repair waits while another controller undoes each: the delay is
 * doubled with every repair of such a conflict. All times are those of `performance.now()`: a clock that is set must not
 * put off repairs.
 */
export class DriftBackoff {
  readonly #perMinute: number;
  #repairs: number[] = [];
  #delayMs = 0;

  /** @param perMinute so many are no conflict; after one more, the next has to wait */
  constructor(perMinute = MAX_REPAIRS_PER_MINUTE) {
    this.#perMinute = perMinute;
  }

  /** The next repair waits until this time. */
  get notBefore(): number {
    return (this.#repairs.at(-1) ?? Number.NEGATIVE_INFINITY) + this.#delayMs;
  }

  /** When a conflict is over, if nothing has to be repaired until then. */
  get settledAt(): number {
    return this.notBefore + WINDOW_MS;
  }

  /** Counts a repair; returns whether it belongs to a conflict. */
  count(now: number): boolean {
    if (now >= this.settledAt) this.#delayMs = 0;
    this.#repairs = [...this.#repairs.filter((time) => now - time < WINDOW_MS), now];
    if (this.#delayMs > 0) this.#delayMs = Math.min(SLOWEST_MS, 2 * this.#delayMs);
    else if (this.#repairs.length > this.#perMinute) this.#delayMs = FIRST_DELAY_MS;
    return this.#delayMs > 0;
  }
}
