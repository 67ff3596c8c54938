import { setTimeout as delay } from "node:timers/promises";

/** How often it is asked: the longer it takes, the more rarely. */
const INTERVALS_MS = { first: 50, last: 250, growth: 0.1 };

/**
 * Repeats an assertion until it holds; a test that passes does not wait for the time-out.
 *
 * @param timeoutMs generous by default, for a slow machine
 * @throws its last error
 */
export async function eventually<T>(assertion: () => T | Promise<T>, timeoutMs = 30_000): Promise<T> {
  const started = performance.now();
  for (;;) {
    try {
      return await assertion();
    } catch (error) {
      if (performance.now() >= started + timeoutMs) throw error;
    }
    const { first, last, growth } = INTERVALS_MS;
    await delay(Math.min(Math.max(first, growth * (performance.now() - started)), last));
  }
}
