import { setTimeout as delay } from "node:timers/promises";

const SHORTEST_INTERVAL_MS = 50;
const LONGEST_INTERVAL_MS = 250;
/** The interval grows with the time that has passed. */
const INTERVAL_FACTOR = 0.1;

/**
 * Repeats an assertion until it holds; a test that passes does not wait for the time-out.
 *
 * @param timeoutMs by default what only something that hangs takes, also on a slow machine
 * @throws its last error
 */
export async function eventually<T>(assertion: () => T | Promise<T>, timeoutMs = 120_000): Promise<T> {
  const started = performance.now();
  for (;;) {
    try {
      return await assertion();
    } catch (error) {
      if (performance.now() >= started + timeoutMs) throw error;
    }
    const interval = INTERVAL_FACTOR * (performance.now() - started);
    await delay(Math.min(Math.max(SHORTEST_INTERVAL_MS, interval), LONGEST_INTERVAL_MS));
  }
}
