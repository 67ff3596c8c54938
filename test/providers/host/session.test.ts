import { beforeAll, expect, it } from "vitest";
import { RetryableError } from "../../../providers/errors";
import type { Fence } from "../../../providers/fence";
import { ProviderHost } from "../../../providers/host/server";

let host: ProviderHost;

beforeAll(async () => {
  host = await ProviderHost.start(new Map());
  return () => host.stop();
});

function outerFence(): { fence: Fence; fall: () => void } {
  const end = new AbortController();
  const fence = { check: () => end.signal.throwIfAborted(), signal: end.signal };
  return { fence, fall: () => end.abort(new RetryableError("LeaseLost", "another one goes on")) };
}

it("is the only one of its stack until it is closed", () => {
  const session = host.openSession("a");
  expect(() => host.openSession("a")).toThrow(expect.objectContaining({ reason: "Locked" }));
  host.openSession("b").close();
  session.close();
  host.openSession("a").close();
});

it("lets nothing be written once it is closed, and says so to requests that are under way", () => {
  const { fence } = outerFence();
  const session = host.openSession("a", { fence });
  session.fence.check();
  session.close();
  expect(() => session.fence.check()).toThrow(expect.objectContaining({ reason: "UpdateEnded" }));
  expect(session.fence.signal.reason).toMatchObject({ reason: "UpdateEnded", errorClass: "retryable" });
});

it("ends its writes with the fence of the work that it is part of", () => {
  const { fence, fall } = outerFence();
  const session = host.openSession("a", { fence });
  fall();
  expect(() => session.fence.check()).toThrow(expect.objectContaining({ reason: "LeaseLost" }));
  expect(session.fence.signal.reason).toMatchObject({ reason: "LeaseLost" });
  session.close();
});
