import type { Logger } from "pino";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { noFence } from "../../providers/fence";
import { ApiError, type LiveObject } from "../../providers/kubernetes/client";
import type { Informer } from "../../src/cache/informer";
import type { InformerFactory } from "../../src/cache/informer-factory";
import type { Claims } from "../../src/controller/claims";
import type { Result } from "../../src/controller/context";
import { Controller, type ControllerEnvironment } from "../../src/controller/controller";
import type { ObjectItem } from "../../src/controller/object-item";
import { objectItem } from "../../src/controller/object-item";
import type { OwnerIndex } from "../../src/controller/owner-index";
import type { Reconciler } from "../../src/controller/reconcile";
import type { WorkQueue } from "../../src/queue/work-queue";
import { createMetrics } from "../../src/telemetry/metrics";
import { FINALIZER, stackName } from "../../stacks/contract/object";
import { memcached } from "../../stacks/kinds/memcached/kind";
import { stub } from "../stub";

const metadata = { namespace: "default", name: "cache", uid: "1", resourceVersion: "1", finalizers: [FINALIZER] };
const object: LiveObject = { apiVersion: "cache.example.com/v1alpha1", kind: "Memcached", metadata };
const item = objectItem(memcached, metadata);
const { signal } = new AbortController();
const everything = () => true;

const queue = {
  add: vi.fn(),
  addAfter: vi.fn(),
  addRateLimited: vi.fn(),
  addWhenBack: vi.fn(),
  endRetries: vi.fn(),
  abandon: vi.fn(),
  forget: vi.fn(),
};
const reconciler = {
  drop: vi.fn(),
  noteDriftPoll: vi.fn(() => true),
  noteChange: vi.fn(),
  stopUpdate: vi.fn(),
  noteRestored: vi.fn(),
  reconcile: vi.fn(),
  hasOwnStatus: () => false,
  hasRemovedFinalizer: vi.fn(() => false),
  removesFinalizerSince: vi.fn<(key: string, uid: string) => number | undefined>(),
};
const warn = vi.fn();
let cached: LiveObject[];
let held: boolean;
let objects: Pick<Informer, "list" | "get"> & { failure: unknown };
let controller: Controller;
const freshness = { reset: vi.fn(), wrote: vi.fn() };

beforeEach(() => {
  vi.resetAllMocks();
  cached = [object];
  held = true;
  const shards: NonNullable<ControllerEnvironment["shards"]> = {
    holds: () => held,
    work: async (_, signal, work) => {
      const result = await work(signal, noFence());
      return held ? result : undefined;
    },
  };
  const environment = stub<ControllerEnvironment>({
    claims: stub<Claims>({ drop: () => {} }),
    informers: stub<InformerFactory>({ stop: () => {} }),
    logger: stub<Logger>({ warn }),
    metrics: createMetrics(),
    owners: stub<OwnerIndex>({ drop: () => {}, set: () => {} }),
    queue: stub<WorkQueue<ObjectItem>>(queue),
    shards,
  });
  objects = { list: () => cached, get: () => cached[0], failure: undefined };
  const stubs = [stub<Informer>(objects), { own: [], owned: [] }, freshness, stub<Reconciler>(reconciler)] as const;
  controller = new Controller(memcached, environment, ...stubs, []);
});

describe("the end of an object", () => {
  const gone = { ...object, metadata: { ...metadata, resourceVersion: "7", finalizers: [] } };
  const ends = (how: { reported?: true }) =>
    controller.objectChanged({ type: "deleted", object: gone, previous: object, ...how });

  it("by the removal of its finalizer proves what the cache shows, as of when that was sent", () => {
    reconciler.removesFinalizerSince.mockReturnValue(5);
    ends({ reported: true });
    expect(freshness.wrote).toHaveBeenCalledExactlyOnceWith({ version: "7", sentAt: 5 });
  });

  it("proves nothing when another removed it, or when a list alone shows it", () => {
    ends({ reported: true });
    reconciler.removesFinalizerSince.mockReturnValue(5);
    ends({});
    expect(freshness.wrote).not.toHaveBeenCalled();
  });
});

describe("an object that was deleted in spite of its finalizer", () => {
  const lose = () => {
    cached = [];
    controller.objectChanged({ type: "deleted", object, previous: object, reported: true });
    queue.add.mockClear();
  };
  const takenOver = () => {
    queue.add.mockClear();
    controller.shardsAcquired(everything);
    return queue.add.mock.calls;
  };

  it("is reconciled when its shard comes back", () => {
    lose();
    expect(takenOver()).toEqual([[item]]);
  });

  it("is reconciled by the replica that holds its shard later", () => {
    held = false;
    lose();
    held = true;
    expect(takenOver()).toEqual([[item]]);
  });

  it("is not forgotten when the shard is lost during its destroy", async () => {
    lose();
    reconciler.reconcile.mockImplementation(async () => {
      held = false;
      return "done";
    });
    await controller.reconcile(item, signal);
    expect(queue.endRetries).not.toHaveBeenCalled();
    held = true;
    expect(takenOver()).toEqual([[item]]);
  });

  it("is forgotten after its destroy", async () => {
    lose();
    reconciler.reconcile.mockResolvedValue("done");
    await controller.reconcile(item, signal);
    expect(takenOver()).toEqual([]);
  });
});

describe("an object that is gone with its stack still there", () => {
  const { finalizers: _, ...rest } = metadata;
  const lose = (changes: Partial<LiveObject>) => {
    const gone = { ...object, metadata: { ...rest, deletionTimestamp: "2026-01-01T00:00:00Z" }, ...changes };
    controller.objectChanged({ type: "deleted", object: gone, previous: object, reported: true });
    return warn.mock.calls.map(([, message]) => message);
  };
  const status = { stack: { name: "s", program: "p" } };

  it("is told of where another has removed its finalizer", () => {
    expect(lose({ status })).toEqual(["finalizer was removed by another: resources and stack stay"]);
  });

  it("is no news where this process has, where it had none, and where it is another replica's", () => {
    expect(lose({})).toEqual([]);
    reconciler.hasRemovedFinalizer.mockReturnValue(true);
    expect(lose({ status })).toEqual([]);
    reconciler.hasRemovedFinalizer.mockReturnValue(false);
    held = false;
    expect(lose({ status })).toEqual([]);
  });
});

it("trusts its cache no more when it gets a shard, on which another replica has worked", () => {
  controller.shardsAcquired(() => false);
  expect(freshness.reset).toHaveBeenCalledOnce();
});

it("drops what it knows of the objects of a shard that another replica gets", () => {
  controller.shardsReleased((shardKey) => shardKey === "another");
  expect(reconciler.drop).not.toHaveBeenCalled();
  controller.shardsReleased((shardKey) => shardKey === stackName(memcached, item.key));
  expect(reconciler.drop).toHaveBeenCalledWith(item.key);
  expect(queue.abandon).toHaveBeenCalledWith(item);
});

it("abandons its objects when its kind is not served any more, so that other kinds do not wait for a try of its objects", () => {
  controller.stop();
  expect(queue.abandon).toHaveBeenCalledWith(item);
});

it.each<[string, Result, keyof typeof queue, unknown[]]>([
  ["retries with back-off", "retry", "addRateLimited", [item]],
  ["retries when a dependency is back", { dependency: "table students" }, "addWhenBack", [item, "table students"]],
  ["comes back after a time", { requeueAfterMs: 5 }, "addAfter", [item, 5]],
  ["resets the back-off after a success", "done", "endRetries", [item]],
])("%s, as a reconcile asks for it", async (_, result, method, expected) => {
  reconciler.reconcile.mockResolvedValue(result);
  await controller.reconcile(item, signal);
  expect(queue[method]).toHaveBeenCalledWith(...expected);
});

describe("a poll for drift", () => {
  it.each<[string, LiveObject[]]>([
    ["deleted", []],
    ["replaced", [{ ...object, metadata: { ...metadata, uid: "2" } }]],
    ["updated", [{ ...object, metadata: { ...metadata, resourceVersion: "2" } }]],
  ])("of an object that was %s meanwhile says nothing", (_, now) => {
    cached = now;
    controller.driftPolled(object, "a row was missing", undefined);
    expect(reconciler.noteDriftPoll).not.toHaveBeenCalled();
  });

  it("leads to a reconcile where it calls for one", () => {
    reconciler.noteDriftPoll.mockReturnValue(true);
    controller.driftPolled(object, "a row was missing", undefined);
    expect(queue.add).toHaveBeenCalledWith(item);
  });
});

describe("a restore of the API server's data", () => {
  it("makes a controller forget what it knows of all objects, and reconcile them", () => {
    controller.restored();
    expect(freshness.reset).toHaveBeenCalledOnce();
    expect(reconciler.drop.mock.calls).toEqual([[item.key]]);
    expect(queue.add.mock.calls).toEqual([[item]]);
  });

  it("is noticed in one object, whose generation went back", () => {
    const at = (generation: number) => ({ ...object, metadata: { ...metadata, generation } });
    controller.objectChanged({ type: "modified", previous: at(2), object: at(3) });
    expect(reconciler.noteRestored).not.toHaveBeenCalled();
    controller.objectChanged({ type: "modified", previous: at(3), object: at(2) });
    expect(reconciler.noteRestored.mock.calls).toEqual([[item.key]]);
  });
});

it("why the objects of a kind are not seen as they are is told in the API server's words, and not where it does not answer: it would take no status either", () => {
  expect(controller.unseenOf(object)).toBeUndefined();
  objects.failure = new ApiError(500, "InternalError", "etcdserver: request timed out");
  expect(controller.unseenOf(object)).toMatchObject({ message: expect.stringContaining("request timed out") });
  objects.failure = new ApiError(0, "Unreachable", "the API server did not answer");
  expect(controller.unseenOf(object)).toBeUndefined();
});
