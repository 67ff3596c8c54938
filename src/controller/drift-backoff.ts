const FIRST_DELAY_MS = 10_000;
const SLOWEST_MS = 5 * 60_000;
const WINDOW_MS = 60_000;

/**
 * How long what has to be done again and again waits: 10 s after the first time, then twice as long each time. All times are
 * those of `performance.now()`: a clock that is set must not put anything off.
 */
export class DriftBackoff {
  #last = Number.NEGATIVE_INFINITY;
  #delayMs = 0;

  /** The next time waits until then. */
  get notBefore(): number {
    return this.#last + this.#delayMs;
  }

  /** Counts a repair. A repair a minute or more after the end of the back-off begins a new series. */
  happened(now: number): void {
    const isFirst = this.#delayMs === 0 || now >= this.notBefore + WINDOW_MS;
    this.#delayMs = isFirst ? FIRST_DELAY_MS : Math.min(SLOWEST_MS, 2 * this.#delayMs);
    this.#last = now;
  }
}
