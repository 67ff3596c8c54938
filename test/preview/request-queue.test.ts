import { describe, expect, it } from "vitest";
import { RequestQueue } from "../../src/preview/request-queue";

const never = new AbortController().signal;

/** Work that continues until it is told to end. */
function work() {
  let end = () => {};
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  return { end, run: () => ended };
}

describe("the queue of requests", () => {
  it("runs one at a time, in their order, also after one that failed", async () => {
    const queue = new RequestQueue();
    const steps: string[] = [];
    const first = work();
    const running = queue.run("a", never, async () => {
      steps.push("first begins");
      await first.run();
      steps.push("first ends");
      throw new Error("no");
    });
    const second = queue.run("b", never, async () => steps.push("second"));
    first.end();

    await expect(running).rejects.toThrow("no");
    await second;
    expect(steps).toEqual(["first begins", "first ends", "second"]);
  });

  it("refuses a user's request when so many of theirs are under way, and takes those of users in turn", async () => {
    const queue = new RequestQueue();
    const first = work();
    const done: string[] = [];
    const running = queue.run("a", never, first.run);
    const under = ["a", "a", "a", "b", "b", "c"].map((user) => queue.run(user, never, async () => done.push(user)));

    await expect(queue.run("a", never, async () => {})).rejects.toMatchObject({ code: 429 });

    first.end();
    await Promise.all([running, ...under]);
    expect(done).toEqual(["a", "b", "c", "a", "b", "a"]);
    await expect(queue.run("a", never, async () => "again")).resolves.toBe("again");
  });

  it("does nothing for a caller that has gone meanwhile", async () => {
    const queue = new RequestQueue();
    const first = work();
    const gone = new AbortController();
    const running = queue.run("a", never, first.run);
    let ran = false;
    const waiting = queue.run("b", gone.signal, async () => {
      ran = true;
    });
    gone.abort(new Error("gone"));
    first.end();

    await running;
    await expect(waiting).rejects.toThrow("gone");
    expect(ran).toBe(false);
  });
});
