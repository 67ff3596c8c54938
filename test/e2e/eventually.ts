import { vi } from "vitest";

/** Until when something has to be as it should; generous, for a slow machine: passing tests do not wait for it. */
const TIMEOUT_MS = 30_000;

/** Repeats an assertion until it holds. @throws its last error */
export function eventually<T>(assertion: () => T | Promise<T>, timeoutMs = TIMEOUT_MS): Promise<T> {
  return vi.waitFor(assertion, { timeout: timeoutMs, interval: 50 });
}
