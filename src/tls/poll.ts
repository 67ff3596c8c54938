import { setInterval } from "node:timers";
import { isDeepStrictEqual } from "node:util";
import type { Logger } from "pino";
import { errorMessageOf } from "../../providers/errors";

/** Certificates that are read periodically, as they may be renewed. */
export interface Polled<T> {
  readonly current: T;
  /**
   * Calls the listener now, and again at every change. A listener that rejects is called again until it succeeds.
   *
   * @throws what the listener throws when it is called for the first time
   */
  follow(listener: (value: T) => void | Promise<void>): Promise<void>;
  close(): void;
}

/**
 * Reads now, and again at every interval; while reading fails, the last value stays.
 *
 * @param read gets the last value, and for how long all listeners have known it, in ms
 */
export async function poll<T>(
  read: (before: T | undefined, knownMs: number) => Promise<T>,
  { intervalMs, logger }: { intervalMs: number; logger: Logger },
): Promise<Polled<T>> {
  let current = await read(undefined, 0);
  let knownSince: number | undefined = Date.now();
  const listeners: ((value: T) => void | Promise<void>)[] = [];
  const tellAll = async () => {
    knownSince = undefined;
    for (const listener of listeners) await listener(current);
    knownSince = Date.now();
  };

  let reading = false;
  const timer = setInterval(async () => {
    if (reading) return;
    reading = true;
    try {
      const latest = await read(current, knownSince === undefined ? 0 : Date.now() - knownSince);
      const changed = !isDeepStrictEqual(latest, current);
      if (changed) {
        current = latest;
        logger.info("certificates were reloaded");
      }
      if (changed || knownSince === undefined) await tellAll();
    } catch (error) {
      logger.warn({ err: error, reason: errorMessageOf(error) }, "failed to reload certificates");
    } finally {
      reading = false;
    }
  }, intervalMs).unref();

  return {
    get current() {
      return current;
    },
    async follow(listener) {
      listeners.push(listener);
      await tellAll();
    },
    close: () => clearInterval(timer),
  };
}
