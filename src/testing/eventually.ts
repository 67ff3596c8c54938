import { setTimeout as delay } from "node:timers/promises";

const INTERVAL_MS = 50;

/**
 * Repeats an assertion until it holds; a test that passes does not wait for the time-out.
 *
 * @param timeoutMs generous by default, for a slow machine
 * @throws its last error
 */
export async function eventually<T>(assertion: () => T | Promise<T>, timeoutMs = 30_000): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    try {
      return await assertion();
    } catch (error) {
      if (performance.now() >= deadline) throw error;
    }
    await delay(INTERVAL_MS);
  }
}
