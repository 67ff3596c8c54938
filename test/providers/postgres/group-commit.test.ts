import { describe, expect, it } from "vitest";
import { RetryableError, TerminalError } from "../../../providers/errors";
import { withinFence } from "../../../providers/fence";
import { GroupCommit } from "../../../providers/postgres/group-commit";

/** Groups that end when they are told to, and what was in them. */
class Groups {
  readonly begun: string[][] = [];
  readonly #ends: (() => void)[] = [];
  readonly #refuse: (items: readonly string[]) => Error | undefined;
  readonly commit: GroupCommit<string, string>;

  constructor(refuse: (items: readonly string[]) => Error | undefined = () => undefined) {
    this.#refuse = refuse;
    this.commit = new GroupCommit({
      together: async (items) => {
        this.begun.push([...items]);
        await new Promise<void>((resolve) => this.#ends.push(resolve));
        const error = this.#refuse(items);
        if (error !== undefined) throw error;
        return `in a group of ${items.length}`;
      },
      likeness: (item) => item.slice(0, 1),
      atMost: () => 3,
    });
  }

  /** Ends groups as they come until all that was asked for is settled. */
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

describe("GroupCommit", () => {
  it("does one at once and those that come meanwhile together, so many at most", async () => {
    const groups = new Groups();

    const results = await groups.all(["a1", "a2", "a3", "a4", "a5"].map((item) => groups.commit.do(item)));

    expect(groups.begun).toEqual([["a1"], ["a2", "a3", "a4"], ["a5"]]);
    expect(results[1]).toEqual(fulfilled("in a group of 3"));
  });

  it("does what is not alike, or has another fence, apart and at the same time", async () => {
    const groups = new Groups();
    const fence = { check: () => {}, signal: new AbortController().signal };

    const asked = [groups.commit.do("a1"), groups.commit.do("b1"), withinFence(fence, () => groups.commit.do("a2"))];

    expect(groups.begun).toEqual([["a1"], ["b1"], ["a2"]]);
    await groups.all(asked);
  });

  it("does each of a group that was refused again, and only who is to blame fails", async () => {
    const refusal = new TerminalError("WrongType", "not a number");
    const groups = new Groups((items) => (items.includes("a3") ? refusal : undefined));

    const results = await groups.all(["a1", "a2", "a3", "a4"].map((item) => groups.commit.do(item)));

    expect(groups.begun).toEqual([["a1"], ["a2", "a3", "a4"], ["a2"], ["a3"], ["a4"]]);
    expect(results).toEqual([
      fulfilled("in a group of 1"),
      fulfilled("in a group of 1"),
      rejected(refusal),
      fulfilled("in a group of 1"),
    ]);
  });

  it("does not ask a database again for each of a group that has not answered", async () => {
    const silence = new RetryableError("ConnectionLost", "no answer", { cause: new Error("ECONNRESET") });
    const groups = new Groups((items) => (items.length > 1 ? silence : undefined));

    const results = await groups.all(["a1", "a2", "a3"].map((item) => groups.commit.do(item)));

    expect(groups.begun).toEqual([["a1"], ["a2", "a3"]]);
    expect(results.slice(1)).toEqual([rejected(silence), rejected(silence)]);
  });

  it("takes up what comes at the very moment when a group ends", async () => {
    const groups = new Groups();

    const first = groups.commit.do("a1");
    const chained = [first.then(() => groups.commit.do("a2")), first.then(() => {}).then(() => groups.commit.do("a3"))];
    const deeper = first.then(async () => {
      for (let turn = 0; turn < 5; turn++) await undefined;
      return groups.commit.do("a4");
    });

    const results = await groups.all([...chained, deeper]);
    expect(results.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "fulfilled"]);
  });
});
