/** In ms; Node.js lets a longer timer fire at once. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1;

/**
 * Waits for work, but no longer than `ms`; what is late is not ended by that.
 *
 * @throws what the work throws, or what `late` makes
 */
export function inTime<T>(work: Promise<T>, ms: number, late: () => Error): Promise<T> {
  const over = Promise.withResolvers<never>();
  const timer = setTimeout(() => over.reject(late()), Math.min(ms, LONGEST_TIMER_MS));
  return Promise.race([work, over.promise]).finally(() => clearTimeout(timer));
}
