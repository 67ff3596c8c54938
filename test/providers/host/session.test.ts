import { describe, expect, it } from "vitest";
import { RetryableError, TerminalError } from "../../../providers/errors";
import { ProviderHost } from "../../../providers/host/session";
import { runningProgram } from "../../../providers/registration";
import { THING_STUB, Things } from "../../automation/things";
import { testContext } from "../test-context";

const URN = "urn:pulumi:s::kindstack::pulumi-nodejs:dynamic/test:Thing::a";
const inputs = { key: "a", value: "1", __provider: THING_STUB };
const things = new Things();
const host = new ProviderHost(new Map([[THING_STUB, things]]));

describe("a provider session", () => {
  it("lets nothing be written once it is closed, and says so to requests that are under way", () => {
    const session = host.openSession({ context: testContext() });
    session.context.fence.check();
    session.close();
    expect(() => session.context.fence.check()).toThrow(expect.objectContaining({ reason: "UpdateEnded" }));
    expect(session.context.fence.signal.reason).toMatchObject({ reason: "UpdateEnded", errorClass: "retryable" });
  });

  it("ends its writes with the fence of the work that it is part of", () => {
    const end = new AbortController();
    const fence = { check: () => end.signal.throwIfAborted(), signal: end.signal };
    const session = host.openSession({ context: testContext({ fence }) });
    end.abort(new RetryableError("LeaseLost", "another one goes on"));
    expect(() => session.context.fence.check()).toThrow(expect.objectContaining({ reason: "LeaseLost" }));
    expect(session.context.fence.signal.reason).toMatchObject({ reason: "LeaseLost" });
    session.close();
  });

  it("answers with the stub that the state needs, and creates nothing after its end", async () => {
    const session = host.openSession({});
    const made = await session.call("Create", { urn: URN, properties: inputs });
    expect(made).toEqual({ id: "a", properties: inputs });
    session.close();
    const late = session.call("Create", { urn: URN, properties: { ...inputs, key: "b" } });
    await expect(late).rejects.toThrow("has ended");
    expect(things.live.has("b")).toBe(false);
  });

  it("keeps the class of a refusal, which the engine would lose", async () => {
    const session = host.openSession({});
    const create = session.call("Create", { urn: URN, properties: { ...inputs, value: "terminal" } });
    await expect(create).rejects.toBeInstanceOf(TerminalError);
    expect(session.failures).toMatchObject([{ urn: URN, errorClass: "terminal", reason: "TableNotAllowed" }]);
  });

  it("calls no provider of another client, and no method that it does not know", async () => {
    const session = host.openSession({});
    const foreign = { urn: URN, properties: { __provider: "exports.handler = () => process.exit(1);" } };
    await expect(session.call("Create", foreign)).rejects.toThrow("not Kindstack's");
    await expect(session.call("toString", foreign)).rejects.toThrow("no method");
  });

  it("releases instead of deleting where it is told so", async () => {
    await host.openSession({ release: true }).call("Delete", { urn: URN, id: "a", properties: inputs });
    expect(things.released).toEqual(["a"]);
    expect(things.live.has("a")).toBe(true);
  });

  it("tells its calls of the work that it is part of", async () => {
    const { log } = testContext();
    const object = { apiVersion: "v1", kind: "Thing", name: "a", uid: "u" };
    const session = host.openSession({ context: testContext({ log, object }) });
    await session.call("Create", { urn: URN, properties: inputs });
    expect(things.lastContext).toMatchObject({ object, signal: { aborted: false } });
    expect(things.lastContext?.log).toBe(log);
    expect(things.lastContext?.fence).toBe(session.context.fence);
  });

  it("tells its calls to end early when it is interrupted, and leaves them the right to write", async () => {
    const interrupt = new AbortController();
    const session = host.openSession({ signals: [interrupt.signal] });
    await session.call("Create", { urn: URN, properties: inputs });
    interrupt.abort(new Error("enough"));
    expect(things.lastContext?.signal.reason).toEqual(new Error("enough"));
    expect(session.context.fence.signal.aborted).toBe(false);
    session.context.fence.check();
  });

  it.each([
    ["an error that tells what it made", { id: "a" }, false],
    ["any other error", {}, true],
  ])("knows from %s whether all that was made is recorded", async (_, told, unrecorded) => {
    const session = host.openSession({});
    things.onWrite = () => {
      throw Object.assign(new RetryableError("Interrupted", "enough"), told);
    };
    await expect(session.call("Create", { urn: URN, properties: inputs })).rejects.toThrow("enough");
    things.onWrite = () => {};
    expect(session.unrecorded).toBe(unrecorded);
  });

  it("does not know what a creation has made that has not ended", async () => {
    const session = host.openSession({});
    const { entered, release } = things.holdSlow();
    const create = session.call("Create", { urn: URN, properties: { ...inputs, value: "slow" } });
    await entered;
    expect(session.unrecorded).toBe(true);
    release();
    await create;
    expect(session.unrecorded).toBe(false);
  });

  it("writes what its calls print by `console` to the log of the work", async () => {
    const lines: unknown[] = [];
    const log = { ...testContext().log, info: (...line: unknown[]) => void lines.push(line) };
    things.onWrite = () => runningProgram().log?.info("printed");
    await host.openSession({ context: testContext({ log }) }).call("Create", { urn: URN, properties: inputs });
    things.onWrite = () => {};
    expect(lines).toEqual([["printed"]]);
  });

  it("fails a call that takes longer than its customTimeouts, without waiting for it", async () => {
    const { entered, release } = things.holdSlow();
    const session = host.openSession({});
    const create = session.call("Create", { urn: URN, properties: { ...inputs, value: "slow" }, timeout: 0.01 });
    await entered;
    await expect(create).rejects.toMatchObject({ errorClass: "retryable", reason: "Timeout" });
    expect(things.lastContext?.signal.reason).toMatchObject({ reason: "Timeout" });
    expect(session.context.signal.aborted).toBe(false);
    release();
    const next = session.call("Create", { urn: URN, properties: inputs, timeout: 60 });
    expect(await next).toMatchObject({ id: "a" });
  });

  it("gives a call customTimeouts that are longer than a timer of Node.js can be", async () => {
    const { entered, release } = things.holdSlow();
    const properties = { ...inputs, value: "slow" };
    const create = host.openSession({}).call("Create", { urn: URN, properties, timeout: 1_000 * 3_600 });
    await entered;
    await new Promise((resolve) => setTimeout(resolve, 2)); // after a timer that is too long, which ends in 1 ms
    release();
    expect(await create).toMatchObject({ id: "a" });
  });
});
