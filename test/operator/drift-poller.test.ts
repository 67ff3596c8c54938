import { pino } from "pino";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { Failure } from "../../providers/errors";
import type { LiveObject } from "../../providers/kubernetes/client";
import type { Controller } from "../../src/controller/controller";
import { pollDrift } from "../../src/operator/drift-poller";
import { memcached } from "../../stacks/kinds/memcached/kind";
import { fakeDelay } from "../fake-delay";

const object = {
  apiVersion: "cache.example.com/v1alpha1",
  kind: "Memcached",
  metadata: { name: "cache", namespace: "default", uid: "1", resourceVersion: "1", generation: 1 },
  status: { conditions: [{ type: "Synced", status: "True", reason: "Succeeded", observedGeneration: 1 }] },
} as unknown as LiveObject;

beforeEach(() => {
  vi.useFakeTimers();
  fakeDelay();
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

it("tells objects whose resources the API server refuses to show, and when it shows them again", async () => {
  const forbidden: Failure = { errorClass: "retryable", reason: "Forbidden", message: "deployments is forbidden" };
  const driftPolled = vi.fn();
  const controller = {
    kind: memcached,
    refusal: undefined as Failure | undefined,
    list: () => [object],
    holds: () => true,
    driftPolled,
  };
  const stop = new AbortController();
  const controllers = () => [controller as unknown as Controller];
  const polling = pollDrift(controllers, 1_000, pino({ level: "silent" }), stop.signal);
  const failureAfterRound = async () => {
    driftPolled.mockClear();
    await vi.advanceTimersByTimeAsync(1_000);
    return driftPolled.mock.calls.map(([, , failure]) => failure);
  };

  expect(await failureAfterRound()).toEqual([undefined]); // an earlier operator may have told them
  expect(await failureAfterRound()).toEqual([]);
  controller.refusal = forbidden;
  expect(await failureAfterRound()).toEqual([forbidden]);
  expect(await failureAfterRound()).toEqual([forbidden]);
  controller.refusal = undefined;
  expect(await failureAfterRound()).toEqual([undefined]);
  expect(await failureAfterRound()).toEqual([]);
  stop.abort();
  await vi.advanceTimersByTimeAsync(1_000);
  await polling;
});
