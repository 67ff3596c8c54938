import timers from "node:timers/promises";
import { vi } from "vitest";

/** Lets `timers.setTimeout` of `node:timers/promises` go by Vitest's fake clock, which does not reach it. */
export function fakeDelay(): void {
  const delay = (ms: number, value: unknown, { signal }: { signal?: AbortSignal } = {}) =>
    new Promise((resolve, reject) => {
      const abort = () => {
        clearTimeout(timer);
        reject(signal?.reason);
      };
      const timer = setTimeout(() => {
        signal?.removeEventListener("abort", abort);
        resolve(value);
      }, ms);
      if (signal?.aborted) return abort();
      signal?.addEventListener("abort", abort, { once: true });
    });
  vi.spyOn(timers, "setTimeout").mockImplementation(delay as typeof timers.setTimeout);
}
