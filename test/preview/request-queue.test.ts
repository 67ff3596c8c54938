import { describe, expect, it, vi } from "vitest";
import { RequestQueue } from "../../src/preview/server";

const never = new AbortController().signal;
const nothing = async () => {};

/** Work that continues until it is told to end. */
function work() {
  const { promise, resolve: end } = Promise.withResolvers<void>();
  return { end, run: () => promise };
}

describe("the queue of requests", () => {
  it("runs one at a time, in their order, also after one that failed", async () => {
    const queue = new RequestQueue();
    const steps: string[] = [];
    const first = work();
    const running = queue.run("a", never, nothing, async () => {
      steps.push("first begins");
      await first.run();
      steps.push("first ends");
      throw new Error("no");
    });
    const second = queue.run("b", never, nothing, async () => steps.push("second"));
    first.end();

    await expect(running).rejects.toThrow("no");
    await second;
    expect(steps).toEqual(["first begins", "first ends", "second"]);
  });

  it("refuses a user's request when so many of theirs are under way, and takes those of users in turn", async () => {
    const queue = new RequestQueue();
    const first = work();
    const done: string[] = [];
    const running = queue.run("a", never, nothing, first.run);
    const under = ["a", "a", "a", "b", "b", "c"].map((user) =>
      queue.run(user, never, nothing, async () => done.push(user)),
    );

    await expect(queue.run("a", never, nothing, async () => {})).rejects.toMatchObject({ code: 429 });

    first.end();
    await Promise.all([running, ...under]);
    expect(done).toEqual(["a", "b", "c", "a", "b", "a"]);
    await expect(queue.run("a", never, nothing, async () => "again")).resolves.toBe("again");
  });

  it("counts a request whose body is still being read", async () => {
    const queue = new RequestQueue();
    const body = work();
    const reading = [1, 2, 3, 4].map(() => queue.run("a", never, body.run, nothing));
    await expect(queue.run("a", never, nothing, nothing)).rejects.toMatchObject({ code: 429 });
    await expect(queue.run("b", never, nothing, async () => "done")).resolves.toBe("done"); // it waits for none of them
    body.end();
    await Promise.all(reading);
  });

  it("does nothing for a caller that has gone meanwhile", async () => {
    const queue = new RequestQueue();
    const first = work();
    const gone = new AbortController();
    const running = queue.run("a", never, nothing, first.run);
    const ran = vi.fn(nothing);
    const waiting = queue.run("b", gone.signal, nothing, ran);
    gone.abort(new Error("gone"));
    first.end();

    await running;
    await expect(waiting).rejects.toThrow("gone");
    expect(ran).not.toHaveBeenCalled();
  });

  it("does not count the requests of a caller that has gone against those that follow", async () => {
    const queue = new RequestQueue();
    const first = work();
    const gone = new AbortController();
    const running = queue.run("a", never, nothing, first.run);
    const left = [1, 2, 3, 4].map(() => queue.run("b", gone.signal, nothing, nothing));
    gone.abort(new Error("gone"));
    const results = await Promise.allSettled(left); // while the first one still runs
    expect(results.map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected", "rejected"]);

    const again = queue.run("b", never, nothing, async () => "done");
    first.end();
    await running;
    await expect(again).resolves.toBe("done");
  });
});
