import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import { RetryableError, TerminalError } from "../../providers/errors";
import { type Fence, noFence } from "../../providers/fence";
import { batched } from "../../providers/postgres/row-batch";

/** Batches that end when they are told to, and what was in them. */
class HeldBatches {
  readonly begun: string[][] = [];
  readonly #ends: (() => void)[] = [];
  readonly #refuse: (items: readonly string[], fence: Fence | undefined) => Error | undefined;
  readonly do: (item: string, fence?: Fence) => Promise<string>;

  constructor(
    refuse: (items: readonly string[], fence: Fence | undefined) => Error | undefined = () => undefined,
    isForAll: (error: unknown) => boolean = () => false,
  ) {
    this.#refuse = refuse;
    const batch = batched<string, string>({
      isForAll,
      run: async (items, fence) => {
        this.begun.push([...items]);
        await new Promise<void>((resolve) => this.#ends.push(resolve));
        const error = this.#refuse(items, fence);
        if (error !== undefined) throw error;
        return `in a batch of ${items.length}`;
      },
      batchKey: (item) => item.slice(0, 1),
      maxSize: () => 3,
    });
    this.do = (item, fence) => batch(item, fence);
  }

  /** Ends batches as they come until all that was asked for is settled. */
  async all<T>(asked: Promise<T>[]): Promise<PromiseSettledResult<T>[]> {
    let isSettled = false;
    const settled = Promise.allSettled(asked).finally(() => {
      isSettled = true;
    });
    while (!isSettled) {
      this.#ends.shift()?.();
      await new Promise(setImmediate);
    }
    return settled;
  }
}

const fulfilled = (value: string) => ({ status: "fulfilled", value });
const rejected = (reason: Error) => ({ status: "rejected", reason });

describe("batched", () => {
  it("does one at once and those that come meanwhile together, so many at most", async () => {
    const held = new HeldBatches();

    const results = await held.all(["a1", "a2", "a3", "a4", "a5"].map((item) => held.do(item)));

    expect(held.begun).toEqual([["a1"], ["a2", "a3", "a4"], ["a5"]]);
    expect(results[1]).toEqual(fulfilled("in a batch of 3"));
  });

  it("does what has another key apart and at the same time", async () => {
    const held = new HeldBatches();

    const asked = [held.do("a1"), held.do("b1"), held.do("a2")];

    expect(held.begun).toEqual([["a1"], ["b1"]]);
    await held.all(asked);
  });

  it("does together what has different fences, under all of them", async () => {
    const checked: string[] = [];
    const fence = (name: string) => ({ check: () => void checked.push(name), signal: new AbortController().signal });
    const held = new HeldBatches((_, common) => void common?.check());

    await held.all(["a1", "a2", "a3"].map((item) => held.do(item, fence(item))));

    expect(held.begun).toEqual([["a1"], ["a2", "a3"]]);
    expect(checked).toEqual(["a1", "a2", "a3"]);
  });

  it("does the others again, and at once, when the fence of one has ended", async () => {
    const ended = new RetryableError("LeaseLost", "another replica continues");
    const silence = new RetryableError("ConnectionLost", "no answer");
    const ends = new AbortController();
    const lost = { check: () => ends.signal.throwIfAborted(), signal: ends.signal };
    const open = () => ({ check: () => {}, signal: new AbortController().signal });
    const held = new HeldBatches(
      (items, common) => {
        if (items.length === 2) ends.abort(ended);
        if (!common?.signal.aborted) return undefined;
        return items.length === 1 ? ended : silence; // the connection was cut off
      },
      (error) => error === silence,
    );

    const results = await held.all([held.do("a1"), held.do("a2", lost), held.do("a3", open())]);

    expect(held.begun).toEqual([["a1"], ["a2", "a3"], ["a2"], ["a3"]]);
    expect(results.slice(1)).toEqual([rejected(ended), fulfilled("in a batch of 1")]);
  });

  it("listens to no fence any more when a batch has ended", async () => {
    const signal = new AbortController().signal;
    const listeners = () => getEventListeners(signal, "abort").length;
    const held = new HeldBatches(() => void expect(listeners()).toBeLessThanOrEqual(1));

    await held.all([held.do("a1"), held.do("a2", { check: () => {}, signal }), held.do("a3", noFence())]);

    expect(listeners()).toBe(0);
  });

  it("does each of a batch that was refused again, and only who is to blame fails", async () => {
    const refusal = new TerminalError("WrongType", "not a number");
    const held = new HeldBatches((items) => (items.includes("a3") ? refusal : undefined));

    const results = await held.all(["a1", "a2", "a3", "a4"].map((item) => held.do(item)));

    expect(held.begun).toEqual([["a1"], ["a2", "a3", "a4"], ["a2"], ["a3"], ["a4"]]);
    expect(results).toEqual([
      fulfilled("in a batch of 1"),
      fulfilled("in a batch of 1"),
      rejected(refusal),
      fulfilled("in a batch of 1"),
    ]);
  });

  it("does nothing of a batch again whose error is for all of it", async () => {
    const silence = new RetryableError("ConnectionLost", "no answer");
    const held = new HeldBatches(
      (items) => (items.length > 1 ? silence : undefined),
      (error) => error === silence,
    );

    const results = await held.all(["a1", "a2", "a3"].map((item) => held.do(item)));

    expect(held.begun).toEqual([["a1"], ["a2", "a3"]]);
    expect(results.slice(1)).toEqual([rejected(silence), rejected(silence)]);
  });

  it("takes up what comes at the very moment when a batch ends", async () => {
    const held = new HeldBatches();

    const first = held.do("a1");
    const chained = [first.then(() => held.do("a2")), first.then(() => {}).then(() => held.do("a3"))];
    const deeper = first.then(async () => {
      for (let tick = 0; tick < 5; tick++) await undefined;
      return held.do("a4");
    });

    const results = await held.all([...chained, deeper]);
    expect(results.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "fulfilled"]);
  });
});
