import { beforeEach, describe, expect, it, vi } from "vitest";
import type { LiveObject } from "../../providers/kubernetes/client";
import type { Informer } from "../../src/cache/informer";
import { objectItem } from "../../src/controller/object-item";
import type { Reconciler } from "../../src/controller/reconcile";
import { Controller, type ControllerEnvironment } from "../../src/operator/controller";
import type { ShardGuard } from "../../src/runner/shared-stacks";
import type { StackRunner } from "../../src/runner/stack-runner";
import { createMetrics } from "../../src/telemetry/metrics";
import { FINALIZER } from "../../stacks/contract/object";
import { memcached } from "../../stacks/memcached/kind";

const metadata = { namespace: "default", name: "cache", uid: "1", resourceVersion: "1", finalizers: [FINALIZER] };
const object: LiveObject = { apiVersion: "cache.example.com/v1alpha1", kind: "Memcached", metadata };
const item = objectItem(memcached, metadata);
const { signal } = new AbortController();
const everything = () => true;

const queue = { add: vi.fn(), addAfter: vi.fn(), addRateLimited: vi.fn(), forget: vi.fn() };
const groups = { forget: vi.fn(), succeeded: vi.fn() };
const reconciler = {
  forget: vi.fn(),
  noteComparison: vi.fn(() => true),
  reconcile: vi.fn(),
  hasOwnStatus: () => false,
};
let cached: LiveObject[];
let held: boolean;
let controller: Controller;

beforeEach(() => {
  vi.resetAllMocks();
  cached = [object];
  held = true;
  const shards: ShardGuard = {
    holds: () => held,
    work: async (_, signal, work) => {
      const result = await work(signal);
      return held ? result : undefined;
    },
  };
  const environment = {
    claims: { forget: () => {} },
    groups,
    logger: { warn: () => {} },
    metrics: createMetrics(),
    owners: { add: () => {}, remove: () => {} },
    queue,
    shards,
  } as unknown as ControllerEnvironment;
  const stacks = { seen() {}, gone() {}, shardKeyOf: () => "shard", takeOver: async () => {} };
  const objects = { list: () => cached, get: () => cached[0] };
  controller = new Controller(
    memcached,
    environment,
    stacks as unknown as StackRunner,
    objects as unknown as Informer,
    [],
    reconciler as unknown as Reconciler,
  );
});

describe("an object that was deleted in spite of its finalizer", () => {
  const lose = () => {
    cached = [];
    controller.objectChanged({ type: "deleted", object, previous: object, reported: true });
    queue.add.mockClear();
  };
  const takenOver = () => {
    queue.add.mockClear();
    controller.takeOver(everything);
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
    expect(groups.succeeded).not.toHaveBeenCalled();
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

it("forgets what it knows of the objects of a shard that another replica gets", () => {
  controller.release((shardKey) => shardKey === "another");
  expect(reconciler.forget).not.toHaveBeenCalled();
  controller.release((shardKey) => shardKey === "shard");
  expect(reconciler.forget).toHaveBeenCalledWith(item.key);
  expect(groups.forget).toHaveBeenCalledWith(item);
});

it("lets others of its back-off group go on when the reconcile of one throws", async () => {
  reconciler.reconcile.mockRejectedValue(new Error("the status was refused"));
  await expect(controller.reconcile(item, signal)).rejects.toThrow("the status was refused");
  expect(groups.forget).toHaveBeenCalledWith(item);
});

describe("a comparison", () => {
  it("of an object that was deleted meanwhile, or replaced, says nothing", () => {
    cached = [];
    controller.compared(object, true, undefined);
    cached = [{ ...object, metadata: { ...metadata, uid: "2" } }];
    controller.compared(object, true, undefined);
    expect(reconciler.noteComparison).not.toHaveBeenCalled();
  });

  it("leads to a reconcile where it calls for one", () => {
    reconciler.noteComparison.mockReturnValue(true);
    controller.compared(object, true, undefined);
    expect(queue.add).toHaveBeenCalledWith(item);
  });
});
