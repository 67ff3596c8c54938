import { setTimeout as delay } from "node:timers/promises";
import { afterEach, describe, expect, it, vi } from "vitest";
import { collector, giveBackMemoryWhenIdle } from "../../src/cli/heap";

const LOOK_EVERY_MS = 100;
/** Holds some 80 MB. */
const large = () => Array.from({ length: 10_000_000 }, (_, index) => index);

describe("giving memory back", () => {
  let stop = () => {};
  afterEach(() => stop());

  it("collects what no one uses any more when the process is idle", async () => {
    const left = new WeakRef(large());
    stop = giveBackMemoryWhenIdle(collector(), LOOK_EVERY_MS);

    await expect.poll(() => isThere(left), { timeout: 4_000, interval: 200 }).toBe(false);
  });

  it("collects once, until there is more again", async () => {
    const held = large();
    const collect = vi.fn();
    stop = giveBackMemoryWhenIdle(collect, LOOK_EVERY_MS);
    await expect.poll(() => collect.mock.calls.length).toBe(1);

    await delay(5 * LOOK_EVERY_MS);

    expect(collect).toHaveBeenCalledOnce();
    expect(held).toHaveLength(10_000_000);
  });

  it("leaves a busy process alone", async () => {
    const held = large();
    const collect = vi.fn();
    stop = giveBackMemoryWhenIdle(collect, LOOK_EVERY_MS);

    const end = performance.now() + 10 * LOOK_EVERY_MS;
    while (performance.now() < end) {
      const slice = performance.now() + LOOK_EVERY_MS / 4;
      while (performance.now() < slice);
      await delay(0);
    }

    expect(collect).not.toHaveBeenCalled();
    expect(held).toHaveLength(10_000_000);
  });
});

/** Looked at in a function of its own, so that nothing but the answer is left of the look. */
function isThere(left: WeakRef<object>): boolean {
  return left.deref() !== undefined;
}
