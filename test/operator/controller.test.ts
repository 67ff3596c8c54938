import { expect, it, vi } from "vitest";
import type { LiveObject } from "../../providers/kubernetes/client";
import type { Informer } from "../../src/cache/informer";
import { objectItem } from "../../src/controller/object-item";
import type { Reconciler } from "../../src/controller/reconcile";
import { Controller, type ControllerEnvironment } from "../../src/operator/controller";
import type { StackRunner } from "../../src/runner/stack-runner";
import { createMetrics } from "../../src/telemetry/metrics";
import { FINALIZER } from "../../stacks/contract/object";
import { memcached } from "../../stacks/memcached/kind";

it("reconciles an object that was deleted in spite of its finalizer when its shard comes back", () => {
  const add = vi.fn();
  const environment = {
    claims: { forget: () => {} },
    groups: { forget: () => {} },
    logger: { warn: () => {} },
    metrics: createMetrics(),
    owners: { add: () => {}, remove: () => {} },
    queue: { add, forget: () => {} },
  } as unknown as ControllerEnvironment;
  const stacks = { seen: () => {}, shardKeyOf: () => "shard", takeOver: async () => {} } as unknown as StackRunner;
  const objects = { list: () => [] } as unknown as Informer;
  const reconciler = { forget: () => {} } as unknown as Reconciler;
  const controller = new Controller(memcached, environment, stacks, objects, [], reconciler);
  const metadata = { namespace: "default", name: "cache", uid: "1", resourceVersion: "1", finalizers: [FINALIZER] };
  const object: LiveObject = { apiVersion: "cache.example.com/v1alpha1", kind: "Memcached", metadata };
  controller.objectChanged({ type: "deleted", object, previous: object, reported: true });
  add.mockClear();

  controller.takeOver((shardKey) => shardKey === "shard");

  expect(add.mock.calls).toEqual([[objectItem(memcached, metadata)]]);
});
