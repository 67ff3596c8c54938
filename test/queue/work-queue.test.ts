import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { exponentialBackoff } from "../../src/queue/backoff";
import type { Item } from "../../src/queue/fair-queue";
import type { WorkQueue, WorkQueueObserver } from "../../src/queue/work-queue";
import { workQueueOf } from "./queues";

const item = (id: string): Item => ({ id });

/** A worker whose runs end when the test says so. */
class ManualWorker {
  readonly started: string[] = [];
  readonly #running = new Map<string, { resolve: () => void; reject: (error: Error) => void }>();

  readonly work = ({ id: key }: Item): Promise<void> => {
    this.started.push(key);
    if (this.#running.has(key)) throw new Error(`two workers on ${key}`);
    return new Promise((resolve, reject) => this.#running.set(key, { resolve, reject }));
  };

  get running(): string[] {
    return [...this.#running.keys()];
  }

  async finish(key: string, error?: Error): Promise<void> {
    const run = this.#running.get(key);
    this.#running.delete(key);
    if (error) run?.reject(error);
    else run?.resolve();
    await vi.advanceTimersByTimeAsync(0);
  }
}

let queue: WorkQueue<Item>;
let worker: ManualWorker;
let stop: AbortController;

beforeEach(() => {
  vi.useFakeTimers();
  vi.spyOn(Math, "random").mockReturnValue(0.5); // no jitter
  queue = workQueueOf({});
  worker = new ManualWorker();
  stop = new AbortController();
});

afterEach(() => {
  stop.abort();
  vi.useRealTimers();
  vi.restoreAllMocks();
});

function run(concurrency: number): Promise<void> {
  return queue.run(concurrency, worker.work, stop.signal);
}

describe("WorkQueue.add", () => {
  it("works once on a key that was added twice before a worker took it", async () => {
    queue.add(item("a"));
    queue.add(item("a"));
    void run(1);
    await worker.finish("a");
    expect(worker.started).toEqual(["a"]);
  });

  it("takes what a person has decided in turns with the rest, though it comes last", async () => {
    for (const key of ["a", "b", "c", "d"]) queue.add(item(key));
    queue.add(item("c"), "decision");
    queue.add(item("e"), "decision");
    queue.add(item("e"));
    expect(queue.depth).toBe(5);
    void run(1);
    for (const key of ["a", "c", "b", "e", "d"]) await worker.finish(key);
    expect(worker.started).toEqual(["a", "c", "b", "e", "d"]);
  });

  it("takes first what was decided while it ran", async () => {
    queue.add(item("a"));
    void run(1);
    for (const key of ["b", "c", "d"]) queue.add(item(key));
    queue.add(item("a"), "decision");
    queue.add(item("a"));
    for (const key of ["a", "b", "a", "c", "d"]) await worker.finish(key);
    expect(worker.started).toEqual(["a", "b", "a", "c", "d"]);
  });

  it("works on no more keys at once than the concurrency allows", async () => {
    void run(2);
    for (const key of ["a", "b", "c"]) queue.add(item(key));
    expect(worker.running).toEqual(["a", "b"]);
    expect(queue.running).toBe(2);
    expect(queue.depth).toBe(1);
    await worker.finish("a");
    expect(worker.running).toEqual(["b", "c"]);
  });

  it("works again, afterwards and once, on a key that was added while it ran", async () => {
    void run(4);
    queue.add(item("a"));
    queue.add(item("a"));
    queue.add(item("a"));
    expect(worker.started).toEqual(["a"]);
    await worker.finish("a");
    expect(worker.started).toEqual(["a", "a"]);
    await worker.finish("a");
    expect(worker.started).toEqual(["a", "a"]);
  });
});

describe("WorkQueue.addAfter", () => {
  it("runs a key when its time has come, not before", async () => {
    void run(1);
    queue.addAfter(item("a"), 1_000);
    await vi.advanceTimersByTimeAsync(999);
    expect(worker.started).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(worker.started).toEqual(["a"]);
  });

  it("keeps the earliest of several times", async () => {
    void run(1);
    queue.addAfter(item("a"), 5_000);
    queue.addAfter(item("a"), 1_000);
    queue.addAfter(item("a"), 9_000);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(worker.started).toEqual(["a"]);
    await worker.finish("a");
    await vi.advanceTimersByTimeAsync(60_000);
    expect(worker.started).toEqual(["a"]);
  });

  it("runs a key at once, and once, when it is added while it waits", async () => {
    void run(1);
    queue.addAfter(item("a"), 5_000);
    queue.add(item("a"));
    expect(worker.started).toEqual(["a"]);
    await worker.finish("a");
    await vi.advanceTimersByTimeAsync(60_000);
    expect(worker.started).toEqual(["a"]);
  });

  it("does not overflow for times beyond the longest timer", async () => {
    void run(1);
    queue.addAfter(item("a"), 2 ** 40);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(worker.started).toEqual([]);
  });
});

describe("WorkQueue.addRateLimited", () => {
  /** Counts a failure of a key. @returns how long it waits then, in seconds */
  const fail = (key: string) => {
    const addAfter = vi.spyOn(queue, "addAfter");
    queue.addRateLimited(item(key));
    return Number(addAfter.mock.lastCall?.[1]) / 1000;
  };

  it("doubles the wait with each failure up to 5 minutes", () => {
    const waits = Array.from({ length: 11 }, () => fail("a"));
    expect(waits).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
  });

  it("starts again after forget, for that key alone", () => {
    for (let i = 0; i < 3; i++) for (const key of ["a", "b"]) fail(key);
    queue.forget(item("a"));
    expect([fail("a"), fail("b")]).toEqual([1, 8]);
  });

  it("runs a key that waits for its back-off at once when it is added, and remembers its failures", async () => {
    void run(1);
    for (let i = 0; i < 4; i++) fail("a");
    queue.add(item("a"));
    expect(worker.started).toEqual(["a"]);
    expect(fail("a")).toBe(16);
  });

  it("spreads the wait by 20 % to either side", () => {
    const limits = { baseMs: 1_000, capMs: 10_000 };
    const waitAt = (random: number, failures: number) => {
      vi.spyOn(Math, "random").mockReturnValue(random);
      return exponentialBackoff(failures, limits);
    };
    expect(waitAt(0, 0)).toBe(800);
    expect(waitAt(1, 0)).toBe(1_200);
    expect(waitAt(0.5, 5_000)).toBe(10_000);
  });
});

describe("WorkQueue.addWhenBack", () => {
  const failAll = (...keys: string[]) => {
    for (const key of keys) queue.addWhenBack(item(key), "table");
  };

  it("tries one key for all, and the others when it has succeeded", async () => {
    void run(4);
    failAll("a", "b", "c");
    await vi.advanceTimersByTimeAsync(60_000);
    expect(worker.started).toEqual(["a"]);
    await worker.finish("a");
    queue.endRetries(item("a"));
    await vi.advanceTimersByTimeAsync(0);
    expect(worker.running).toEqual(["b", "c"]);
  });

  it("tries another one when that one leaves, fails for itself or is not ours any more", async () => {
    const others = new Set<string>();
    queue = workQueueOf({ accepts: ({ id }) => !others.has(id) });
    void run(4);
    failAll("a", "b", "c", "d");
    queue.abandon(item("a"));
    queue.addRateLimited(item("b"));
    others.add("c");
    await vi.advanceTimersByTimeAsync(60_000);
    expect(worker.started).toEqual(["a", "b", "d"]); // a and b by themselves
  });

  it("runs a key at once when it is added meanwhile, and tells by it that the table is back", async () => {
    void run(4);
    failAll("a", "b", "c");
    queue.add(item("c"));
    await worker.finish("c");
    queue.endRetries(item("c"));
    await vi.advanceTimersByTimeAsync(0);
    expect(worker.started).toEqual(["c", "b"]); // a is the next to be tried anyway
  });
});

describe("WorkQueue.run", () => {
  it("retries with back-off what a worker throws, and continues with the other keys", async () => {
    void run(1);
    queue.add(item("a"));
    queue.add(item("b"));
    await worker.finish("a", new Error("boom"));
    expect(worker.running).toEqual(["b"]);
    await worker.finish("b");
    await vi.advanceTimersByTimeAsync(1_000);
    expect(worker.started).toEqual(["a", "b", "a"]);
  });

  it("resolves after the abort of its signal when the running workers are done", async () => {
    const ended = vi.fn();
    void run(1).then(ended);
    queue.add(item("a"));
    queue.add(item("b"));
    stop.abort();
    await vi.advanceTimersByTimeAsync(0);
    expect(ended).not.toHaveBeenCalled();
    await worker.finish("a");
    expect(ended).toHaveBeenCalledOnce();
    expect(worker.started).toEqual(["a"]);
  });
});

describe("WorkQueue.drain", () => {
  it("resolves at once when nothing runs", async () => {
    await expect(queue.shutDown()).resolves.toBeUndefined();
  });

  it("gives out no new work, leaves no timers and ignores what is added later", async () => {
    void run(1);
    queue.add(item("a"));
    queue.add(item("a"));
    queue.add(item("b"));
    queue.addAfter(item("c"), 1_000);
    const ended = queue.shutDown();
    expect(vi.getTimerCount()).toBe(0);
    queue.add(item("d"));
    queue.addAfter(item("e"), 1_000);
    queue.addRateLimited(item("f"));
    await worker.finish("a", new Error("interrupted"));
    await ended;
    expect(vi.getTimerCount()).toBe(0);
    expect(worker.started).toEqual(["a"]);
    expect(queue.depth).toBe(0);
    expect(queue.running).toBe(0);
  });
});

it("tells its observer about additions, retries, depth and durations", async () => {
  const seen: [string, number?][] = [];
  const observer: WorkQueueObserver = {
    added: () => seen.push(["added"]),
    retried: () => seen.push(["retried"]),
    depthChanged: (depth) => seen.push(["depth", depth]),
    started: (seconds) => seen.push(["started", seconds]),
    finished: (seconds) => seen.push(["finished", seconds]),
  };
  queue = workQueueOf({ observer });
  queue.add(item("a"));
  await vi.advanceTimersByTimeAsync(2_000);
  void run(1);
  await vi.advanceTimersByTimeAsync(3_000);
  queue.addRateLimited(item("a"));
  await worker.finish("a");
  expect(seen).toEqual([["added"], ["depth", 1], ["depth", 0], ["started", 2], ["retried"], ["finished", 3]]);
});

it("never has two workers on a key, and runs every key after its last addition (property)", async () => {
  const command = fc.oneof(
    fc.record({
      do: fc.constantFrom("add", "addRateLimited", "finish", "fail"),
      key: fc.constantFrom("a", "b", "c", "d"),
    }),
    fc.record({ do: fc.constantFrom("addAfter", "wait"), key: fc.constantFrom("a", "b", "c"), ms: fc.nat(5_000) }),
  );
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 3 }),
      fc.array(command, { maxLength: 60 }),
      async (concurrency, commands) => {
        const queue = workQueueOf({});
        const worker = new ManualWorker(); // throws when two work on a key, which would show as a failure below
        const stop = new AbortController();
        let clock = 0;
        const startedAt = new Map<string, number>();
        const addedAt = new Map<string, number>();
        const overlaps: string[] = [];
        const ended = queue.run(
          concurrency,
          (item) => {
            const { id: key } = item;
            if (worker.running.includes(key) || worker.running.length >= concurrency) overlaps.push(key);
            startedAt.set(key, clock++);
            return worker.work(item);
          },
          stop.signal,
        );
        for (const step of commands) {
          if (step.do.startsWith("add")) addedAt.set(step.key, clock++);
          if (step.do === "add") queue.add(item(step.key));
          else if (step.do === "addRateLimited") queue.addRateLimited(item(step.key));
          else if (step.do === "finish") await worker.finish(step.key);
          else if (step.do === "fail") await worker.finish(step.key, new Error("failed"));
          else if (step.do === "addAfter" && "ms" in step) queue.addAfter(item(step.key), step.ms);
          else if ("ms" in step) await vi.advanceTimersByTimeAsync(step.ms);
        }
        while (worker.running.length > 0 || queue.depth > 0 || vi.getTimerCount() > 0) {
          for (const key of worker.running) await worker.finish(key);
          await vi.advanceTimersByTimeAsync(400_000);
        }
        stop.abort();
        await ended;

        expect(overlaps).toEqual([]);
        for (const [key, added] of addedAt) expect(startedAt.get(key), key).toBeGreaterThan(added);
      },
    ),
  );
});

describe("fairness keys", () => {
  const fairnessKeyOf = ({ id }: Item) => id.split("/")[0] ?? "";

  it("are served in rotation: the thousand items of one do not delay a single item of another by more than one of them", async () => {
    queue = workQueueOf({ fairnessKeyOf });
    for (let index = 0; index < 1_000; index++) queue.add(item(`many/${index}`));
    queue.add(item("one/0"));
    void run(1);
    await worker.finish("many/0");
    expect(worker.started).toEqual(["many/0", "one/0"]);
  });

  it("have their items in order, and none is left out", async () => {
    queue = workQueueOf({ fairnessKeyOf });
    for (const key of ["a/1", "a/2", "a/3", "b/1", "b/2", "c/1"]) queue.add(item(key));
    void run(1);
    while (worker.running[0] !== undefined) await worker.finish(worker.running[0]);
    expect(worker.started).toEqual(["a/1", "b/1", "c/1", "a/2", "b/2", "a/3"]);
  });
});

describe("groups", () => {
  const groupOf = ({ id }: Item) => id.split("/")[0] ?? "";
  const started = (group: string) => worker.started.filter((key) => key.startsWith(group));

  it.each([
    [8, 6],
    [4, 3],
    [3, 3],
    [1, 1],
  ])(
    "of %i workers one group holds %i, so that another one's item need not wait for what they wait for",
    (concurrency, most) => {
      queue = workQueueOf({ groupOf });
      void run(concurrency);
      for (let index = 0; index < 20; index++) queue.add(item(`slow/${index}`));
      expect(started("slow")).toHaveLength(most);
      queue.add(item("other/0"));
      expect(started("other")).toHaveLength(most < concurrency ? 1 : 0);
    },
  );

  it("take turns, and have all their items worked on in the end", async () => {
    queue = workQueueOf({ groupOf });
    for (const key of ["a/1", "a/2", "a/3", "b/1"]) queue.add(item(key));
    void run(1);
    while (worker.running[0] !== undefined) await worker.finish(worker.running[0]);
    expect(worker.started).toEqual(["a/1", "b/1", "a/2", "a/3"]);
    expect(queue.depth).toBe(0);
  });
});

it("a clock that is set forward does not make a later run look earlier than the one that is asked for", async () => {
  void queue.run(1, worker.work, stop.signal);
  queue.addAfter(item("a"), 300_000);

  vi.setSystemTime(Date.now() + 3_600_000);
  queue.addAfter(item("a"), 1_000);
  await vi.advanceTimersByTimeAsync(1_000);

  expect(worker.started).toEqual(["a"]);
});
