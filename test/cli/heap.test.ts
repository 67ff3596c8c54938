import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { giveBackMemoryWhenIdle, ownHeap } from "../../src/cli/heap";

const LOOK_EVERY_MS = 10_000;
const MIB = 2 ** 20;

describe("giving memory back", () => {
  let busyMs = 0;
  let mib = 0;
  const collect = vi.fn<() => void>();
  let stop = () => {};
  beforeEach(() => {
    vi.useFakeTimers();
    [busyMs, mib] = [0, 100];
    collect.mockReset();
    stop = giveBackMemoryWhenIdle({
      cpuUsage: () => ({ user: busyMs * 1000, system: 0 }),
      size: () => mib * MIB,
      collect,
    });
  });
  afterEach(() => {
    stop();
    vi.useRealTimers();
  });

  it("collects when the process is idle", () => {
    vi.advanceTimersByTime(LOOK_EVERY_MS);
    expect(collect).toHaveBeenCalledOnce();
  });

  it("collects once, until there is more again", () => {
    collect.mockImplementation(() => {
      mib = 60;
    });
    vi.advanceTimersByTime(5 * LOOK_EVERY_MS);
    expect(collect).toHaveBeenCalledOnce();

    mib = 91;
    vi.advanceTimersByTime(LOOK_EVERY_MS);
    expect(collect).toHaveBeenCalledOnce();

    mib = 92;
    vi.advanceTimersByTime(LOOK_EVERY_MS);
    expect(collect).toHaveBeenCalledTimes(2);
  });

  it("leaves a busy process alone until it rests", () => {
    for (let look = 0; look < 5; look += 1) {
      busyMs += LOOK_EVERY_MS * 0.06;
      vi.advanceTimersByTime(LOOK_EVERY_MS);
    }
    expect(collect).not.toHaveBeenCalled();

    busyMs += LOOK_EVERY_MS * 0.04;
    vi.advanceTimersByTime(LOOK_EVERY_MS);
    expect(collect).toHaveBeenCalledOnce();
  });
});

describe("the heap of this process", () => {
  it("loses what no one uses any more when it is collected", async () => {
    const left = new WeakRef({});
    // What was looked at stays until the end of the turn.
    await delay(0);

    ownHeap().collect();

    await delay(0);
    expect(isThere(left)).toBe(false);
  });
});

/** Looked at in a function of its own, so that nothing but the answer is left of the look. */
function isThere(left: WeakRef<object>): boolean {
  return left.deref() !== undefined;
}
