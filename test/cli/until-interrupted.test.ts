import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { untilInterrupted } from "../../src/cli/until-interrupted";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
type Signal = (typeof SIGNALS)[number];

/** A signal without listeners ends the process. */
const listeners = () => SIGNALS.map((name) => process.listenerCount(name));
const send = (name: Signal) => process.listeners(name).at(-1)?.(name);

describe("work until an interruption", () => {
  it.each(["SIGINT", "SIGTERM"] as const)(
    "has a signal that %s aborts; any second one ends the process",
    async (name) => {
      const before = listeners();
      await untilInterrupted(async (signal) => {
        expect(listeners()).toEqual([1, 1, 0].map((own, index) => own + (before[index] ?? 0)));
        send(name);
        expect(signal.aborted).toBe(true);
        // A library that was loaded meanwhile hears of it next, and ends the process where it finds no other listener.
        expect(listeners()).not.toEqual(before);
        await nextTurn();
        expect(listeners()).toEqual(before);
      });
    },
  );

  it("goes on in order through all signals when it must", async () => {
    const before = listeners();
    await untilInterrupted(async (signal) => {
      for (const name of [...SIGNALS, ...SIGNALS]) send(name);
      expect(signal.aborted).toBe(true);
      expect(listeners()).toEqual(before.map((count) => count + 1));
    }, true);
    expect(listeners()).toEqual(before);
  });
});
