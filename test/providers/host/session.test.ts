import { describe, expect, it } from "vitest";
import { RetryableError, TerminalError } from "../../../providers/errors";
import type { Fence } from "../../../providers/fence";
import { checkFence } from "../../../providers/fence";
import { ProviderHost } from "../../../providers/host/host";
import { THING_STUB, Things } from "../../automation/things";

const URN = "urn:pulumi:s::kindstack::pulumi-nodejs:dynamic/test:Thing::a";
const inputs = { key: "a", value: "1", __provider: THING_STUB };
const things = new Things();
const host = new ProviderHost(new Map([[THING_STUB, things]]));

function outerFence(): { fence: Fence; fall: () => void } {
  const end = new AbortController();
  const fence = { check: () => end.signal.throwIfAborted(), signal: end.signal };
  return { fence, fall: () => end.abort(new RetryableError("LeaseLost", "another one goes on")) };
}

describe("a provider session", () => {
  it("lets nothing be written once it is closed, and says so to requests that are under way", () => {
    const { fence } = outerFence();
    const session = host.openSession({ fence });
    session.fence.check();
    session.close();
    expect(() => session.fence.check()).toThrow(expect.objectContaining({ reason: "UpdateEnded" }));
    expect(session.fence.signal.reason).toMatchObject({ reason: "UpdateEnded", errorClass: "retryable" });
  });

  it("ends its writes with the fence of the work that it is part of", () => {
    const { fence, fall } = outerFence();
    const session = host.openSession({ fence });
    fall();
    expect(() => session.fence.check()).toThrow(expect.objectContaining({ reason: "LeaseLost" }));
    expect(session.fence.signal.reason).toMatchObject({ reason: "LeaseLost" });
    session.close();
  });

  it("answers with the stub that the state needs, and creates nothing after its end", async () => {
    const session = host.openSession();
    const made = await session.call("Create", { urn: URN, properties: inputs });
    expect(made).toEqual({ id: "a", properties: inputs });
    session.close();
    await expect(session.call("Create", { urn: URN, properties: { ...inputs, key: "b" } })).rejects.toThrow(
      "has ended",
    );
    expect(things.live.has("b")).toBe(false);
  });

  it("keeps the class of a refusal, which the engine would lose", async () => {
    const session = host.openSession();
    const create = session.call("Create", { urn: URN, properties: { ...inputs, value: "terminal" } });
    await expect(create).rejects.toBeInstanceOf(TerminalError);
    expect(session.failures).toMatchObject([{ urn: URN, errorClass: "terminal", reason: "TableNotAllowed" }]);
  });

  it("calls no provider of another client, and no method that it does not know", async () => {
    const session = host.openSession();
    const foreign = { urn: URN, properties: { __provider: "exports.handler = () => process.exit(1);" } };
    await expect(session.call("Create", foreign)).rejects.toThrow("not Kindstack's");
    await expect(session.call("toString", foreign)).rejects.toThrow("no method");
  });

  it("releases instead of deleting where it is told so", async () => {
    await host.openSession({ release: true }).call("Delete", { urn: URN, id: "a", properties: inputs });
    expect(things.released).toEqual(["a"]);
    expect(things.live.has("a")).toBe(true);
  });

  it("runs calls within its fence", async () => {
    const session = host.openSession();
    await session.call("Create", { urn: URN, properties: inputs });
    expect(things.lastFence).toBe(session.fence);
    expect(() => checkFence()).not.toThrow();
  });

  it("fails a call that takes longer than its customTimeouts, without waiting for it", async () => {
    const { entered, release } = things.holdSlow();
    const session = host.openSession();
    const create = session.call("Create", { urn: URN, properties: { ...inputs, value: "slow" }, timeout: 0.01 });
    await entered;
    await expect(create).rejects.toMatchObject({ errorClass: "retryable", reason: "Timeout" });
    release();
    const next = session.call("Create", { urn: URN, properties: inputs, timeout: 60 });
    expect(await next).toMatchObject({ id: "a" });
  });

  it("gives a call customTimeouts that are longer than a timer of Node.js can be", async () => {
    const { entered, release } = things.holdSlow();
    const properties = { ...inputs, value: "slow" };
    const create = host.openSession().call("Create", { urn: URN, properties, timeout: 1_000 * 3_600 });
    await entered;
    await new Promise((resolve) => setTimeout(resolve, 2)); // after a timer that is too long, which ends in 1 ms
    release();
    expect(await create).toMatchObject({ id: "a" });
  });
});
