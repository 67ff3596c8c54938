import { describe, expect, it } from "vitest";
import { prepareProgram } from "../../src/automation/program";
import { withUnhandled } from "../../src/automation/unhandled";
import { Thing } from "./things";

const MINUTE_MS = 60_000;

const prepare = (program: () => void | Promise<void>, timeoutMs = MINUTE_MS, signal?: AbortSignal) =>
  prepareProgram(program, undefined, { timeoutMs, signals: [undefined, signal] });

describe("a plain program", () => {
  it("is prepared as what it declares", async () => {
    const { parameter } = await prepare(() => void new Thing("a", { key: "a", value: "1" }));
    expect(parameter).toMatchObject({ resources: [{ name: "a" }] });
  });

  it("fails with an error in a promise that it does not await", async () => {
    const program = () => {
      void Promise.reject(new Error("forgotten"));
      new Thing("a", { key: "a", value: "1" });
    };
    await expect(prepare(program)).rejects.toThrow("forgotten");
  });

  it("is waited for no longer when its update is interrupted", async () => {
    const abort = new AbortController();
    const prepared = prepare(() => new Promise(() => {}), MINUTE_MS, abort.signal);
    abort.abort(new Error("enough"));
    await expect(prepared).rejects.toThrow("enough");
    await expect(prepare(() => {}, MINUTE_MS, abort.signal)).rejects.toThrow("enough");
  });

  it.each([
    ["a timer", (fail: () => void) => void setTimeout(fail, 0)],
    ["the next tick", (fail: () => void) => process.nextTick(fail)],
    ["an async function", (fail: () => void) => void setTimeout(async () => fail(), 0)],
  ])("fails with an error that it throws in %s, although it never ends", async (_, later) => {
    const fail = () => {
      throw new Error("later");
    };
    await expect(
      prepare(() => {
        later(fail);
        return new Promise(() => {});
      }),
    ).rejects.toThrow("later");
  });

  it("is given up when it does not end in the time of an update", async () => {
    await expect(prepare(() => new Promise(() => {}), 20)).rejects.toMatchObject({
      reason: "ProgramTimedOut",
      errorClass: "retryable",
      message: expect.stringContaining("within 0.02 s"),
    });
  });

  it("passes an error that comes after its end to the work that it belongs to", async () => {
    const told = Promise.withResolvers<unknown>();
    const late = Promise.withResolvers<void>();
    await withUnhandled(told.resolve, () => prepare(() => void late.promise.then(() => Promise.reject("too late"))));
    late.resolve();
    expect(await told.promise).toBe("too late");
  });

  it("is not told of the errors of another one", async () => {
    const program = (name: string) => async () => {
      if (name === "a") void Promise.reject(new Error("of a"));
      await new Promise((resolve) => setTimeout(resolve, 0));
      new Thing(name, { key: name, value: "1" });
    };
    const [a, b] = await Promise.allSettled([prepare(program("a")), prepare(program("b"))]);
    expect(a).toMatchObject({ status: "rejected", reason: { message: "of a" } });
    expect(b).toMatchObject({ status: "fulfilled" });
  });
});
