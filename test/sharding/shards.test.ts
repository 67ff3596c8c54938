import pino from "pino";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Shards, shardOf } from "../../src/sharding/shards";
import { LeaseMemory } from "./lease-memory";

const timing = { leaseDurationMs: 15_000, renewDeadlineMs: 10_000, retryPeriodMs: 20 };
const forever = new AbortController().signal;

let clock: number;
let store: LeaseMemory;
let shards: Shards;
let fed: number[];
/** Of each time that shards are released, whether `stack` is in one of them. */
let released: boolean[];
let running: Promise<void>;
beforeEach(async () => {
  released = [];
  clock = 0;
  store = new LeaseMemory();
  fed = [];
  shards = new Shards({
    store,
    shards: 4,
    timing,
    logger: pino({ level: "silent" }),
    now: () => clock,
    sessionName: () => "a-1",
    allow: (ms) => fed.push(ms),
  });
  const acquired = new Promise<void>((resolve) => {
    let count = 0;
    running = shards.run({
      acquired: () => {
        count++;
        if (count === 4) resolve();
      },
      released: (includes) => released.push(includes("stack")),
    });
  });
  await acquired;
});
afterEach(async () => {
  shards.leave();
  await running;
});

describe("work on a stack", () => {
  it("runs, and may write, while the shard is ours", async () => {
    const result = await shards.work("stack", forever, async (_signal, fence) => {
      fence.check();
      return "done";
    });
    expect(result).toBe("done");
    expect(fed).toEqual([13_750]);
  });

  it("may not write from the moment when the time is over, even if no one has noticed, and is told so", async () => {
    let refused: unknown;
    let isAborted = false;
    const result = await shards.work("stack", forever, async (signal, fence) => {
      clock += timing.renewDeadlineMs; // as if it had been frozen
      try {
        fence.check();
      } catch (error) {
        refused = error;
      }
      isAborted = signal.aborted && fence.signal.aborted;
      return "done";
    });
    expect(refused).toMatchObject({ reason: "LeaseLost", errorClass: "retryable" });
    expect(isAborted).toBe(true);
    expect(result).toBeUndefined();
    expect(shards.holds("stack")).toBe(false);
  });

  it("that was lost may not write under a Lease that was got again", async () => {
    const { promise: frozen, resolve: resume } = Promise.withResolvers<void>();
    let late: unknown;
    const working = shards.work("stack", forever, async (_signal, fence) => {
      await frozen;
      late = await Promise.resolve()
        .then(() => fence.check())
        .catch((error: unknown) => error);
    });
    clock += timing.leaseDurationMs;
    expect(shards.holds("stack")).toBe(false);
    resume();
    await working;
    expect(late).toMatchObject({ reason: "LeaseLost" });
  });

  it("does not begin when the shard is not ours", async () => {
    clock += timing.renewDeadlineMs;
    expect(await shards.work("stack", forever, () => Promise.reject(new Error("began")))).toBeUndefined();
  });

  it("is interrupted by a stop like any other", async () => {
    const stop = new AbortController();
    const working = shards.work("stack", stop.signal, async (signal) => {
      stop.abort();
      return signal.aborted;
    });
    expect(await working).toBe(true);
  });
});

describe("a shard that is given back", () => {
  it("begins no work any more, and is told of as released once the work on it has ended", async () => {
    const { promise: waiting, resolve: resume } = Promise.withResolvers<void>();
    void shards.work("stack", forever, () => waiting);
    let drained = false;
    shards.leave();
    const drain = shards.drained(shardOf("stack", 4)).then(() => {
      drained = true;
    });
    expect(shards.holds("stack")).toBe(false);
    await Promise.resolve();
    expect(drained).toBe(false);
    expect(released).not.toContain(true);
    resume();
    await drain;
    expect(released).toContain(true);
  });

  it("is told of as released when all are lost, once the work on it has ended", async () => {
    const { promise: waiting, resolve: resume } = Promise.withResolvers<void>();
    void shards.work("stack", forever, () => waiting);
    const lost = shards.lost(0);
    await Promise.resolve();
    expect(released).toEqual([]);
    resume();
    await lost;
    expect(released).toEqual([true]);
  });
});

describe("the shard of a stack", () => {
  it("is the same for ever", () => {
    expect(["a", "b", "postgreswriter.default.sample"].map((stack) => shardOf(stack, 16))).toEqual([2, 6, 4]);
    expect(shardOf("anything", 1)).toBe(0);
  });

  it("is any of them equally often", () => {
    const found = Array.from({ length: 8_000 }, (_, index) => shardOf(`stack-${index}`, 8));
    for (let shard = 0; shard < 8; shard++) {
      expect(Math.abs(found.filter((other) => other === shard).length - 1000)).toBeLessThan(150);
    }
  });
});
