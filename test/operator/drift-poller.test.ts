import { pino } from "pino";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { Failure } from "../../providers/errors";
import type { LiveObject } from "../../providers/kubernetes/client";
import type { Controller } from "../../src/controller/controller";
import { pollDrift } from "../../src/operator/drift-poller";
import { memcached } from "../../stacks/kinds/memcached/kind";
import { fakeDelay } from "../fake-delay";
import { stub } from "../stub";

/** One that is settled, unless its update has failed. @param unknown whether its status says that drift is unknown */
const objectWith = (unknown: boolean, synced = "True") =>
  ({
    apiVersion: "cache.example.com/v1alpha1",
    kind: "Memcached",
    metadata: { name: "cache", namespace: "default", uid: "1", resourceVersion: "1", generation: 1 },
    status: {
      conditions: [
        { type: "Synced", status: synced, reason: "Any", observedGeneration: 1 },
        ...(unknown ? [{ type: "DriftUnknown", status: "True", reason: "Forbidden", observedGeneration: 1 }] : []),
      ],
    },
  }) as LiveObject;

let stop: AbortController;
let polling: Promise<void> = Promise.resolve();
beforeEach(() => {
  vi.useFakeTimers();
  fakeDelay();
  stop = new AbortController();
});
afterEach(async () => {
  stop.abort();
  await round();
  await polling;
  vi.useRealTimers();
  vi.restoreAllMocks();
});

const round = () => vi.advanceTimersByTimeAsync(1_000);
/** Polls the objects of a controller until the test ends. */
function poll<T extends object>(members: T): T {
  const controller = { kind: memcached, holds: () => true, ...members };
  polling = pollDrift(() => [stub<Controller>(controller)], 1_000, pino({ level: "silent" }), stop.signal);
  return controller;
}

it("tells objects whose resources the API server refuses to show, and when it shows them again", async () => {
  const forbidden: Failure = { errorClass: "retryable", reason: "Forbidden", message: "deployments is forbidden" };
  const driftPolled = vi.fn();
  let object = objectWith(false);
  let refusal: Failure | undefined;
  poll({ unserved: [], unseenOf: () => refusal, list: () => [object], driftPolled });
  const failureAfterRound = async () => {
    driftPolled.mockClear();
    await round();
    return driftPolled.mock.calls.map(([, , failure]) => failure);
  };

  expect(await failureAfterRound()).toEqual([]);
  refusal = forbidden;
  expect(await failureAfterRound()).toEqual([forbidden]);
  object = objectWith(true);
  expect(await failureAfterRound()).toEqual([forbidden]);
  refusal = undefined;
  object = objectWith(true, "False");
  expect(await failureAfterRound()).toEqual([]); // its update fails for the same reason, and is retried later
  object = objectWith(true);
  expect(await failureAfterRound()).toEqual([undefined]);
  object = objectWith(false);
  expect(await failureAfterRound()).toEqual([]);
});

it("has what failed for the lack of a type tried again once the type is served", async () => {
  const object = objectWith(false, "False");
  const stalled = { type: "Stalled", status: "True", reason: "UnknownKind", observedGeneration: 1 };
  (object.status as { conditions: object[] }).conditions.push(stalled);
  const reconsider = vi.fn();
  const unserved = [{ apiVersion: "example.com/v1", kind: "Widget" }];
  const controller = poll({ unserved, unseenOf: () => undefined, list: () => [object], reconsider });
  await round();
  expect(reconsider).not.toHaveBeenCalled();
  controller.unserved = [];
  await round();
  expect(reconsider.mock.calls).toMatchObject([[{ key: "default/cache" }]]);
});
