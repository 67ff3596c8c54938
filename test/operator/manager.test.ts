import { createSecretKey } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import { pino } from "pino";
import Type from "typebox";
import { expect, it, vi } from "vitest";
import { ApiError, type KubernetesClient, type LiveObject, type ObjectType } from "../../providers/kubernetes/client";
import { OWNER_UID_LABEL, ownedFieldsDigest } from "../../providers/kubernetes/ownership";
import type { EventRecorder } from "../../src/controller/event-recorder";
import { Manager, type ManagerOptions } from "../../src/operator/manager";
import { createMetrics } from "../../src/telemetry/metrics";
import { programDigest } from "../../stacks/contract/digest";
import { defineKind } from "../../stacks/contract/kind";
import { FINALIZER, objectId, stackName } from "../../stacks/contract/object";
import { upResult } from "../automation/up-result";
import { lookupOf } from "../providers/kubernetes/lookup-of";
import { stub } from "../stub";
import { GADGET } from "./gadget";

const configMap: LiveObject = {
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "a", namespace: "ns", uid: "2", resourceVersion: "2", labels: { [OWNER_UID_LABEL]: "1" } },
};
const gadget = defineKind({
  ...GADGET,
  spec: Type.Object({}),
  owns: [{ apiVersion: "v1", kind: "ConfigMap" }],
});
/** One whose last update has made the ConfigMap, with the program as it is. */
const object: LiveObject = {
  apiVersion: "test.kindstack.dev/v1",
  kind: "Gadget",
  metadata: { name: "a", namespace: "ns", uid: "1", resourceVersion: "3", generation: 1, finalizers: [FINALIZER] },
  spec: {},
  status: {
    observedGeneration: 1,
    conditions: [{ type: "Synced", status: "True", reason: "Succeeded", message: "", observedGeneration: 1 }],
    stack: {
      name: stackName(gadget, "ns/a"),
      program: programDigest(gadget),
      resources: [{ id: objectId(configMap), fields: ownedFieldsDigest(configMap) }],
    },
  },
};

it("reconciles the objects of a kind that it serves later when all caches of the kind are filled", async () => {
  const ownedListed = Promise.withResolvers<void>();
  const client = {
    resourceType: async (apiVersion: string, kind: string) => {
      if (!["Namespace", "Gadget", "ConfigMap"].includes(kind)) throw new ApiError(404, "UnknownKind", kind);
      return { apiVersion, kind, plural: kind, namespaced: kind !== "Namespace" };
    },
    get: async () => lookupOf(undefined),
    find: async () => lookupOf(object),
    list: async ({ kind }: ObjectType) => {
      if (kind === "ConfigMap") await ownedListed.promise;
      const items = kind === "Gadget" ? [object] : kind === "ConfigMap" ? [configMap] : [];
      return { items, resourceVersion: "3" };
    },
    watch: (_: ObjectType, { signal }: { signal: AbortSignal }) =>
      new Promise<never>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
    patchExactly: async () => object,
    replaceStatus: async () => object,
  };
  const up = vi.fn(async () => upResult());
  const metrics = createMetrics();
  const manager = new Manager({
    kinds: [],
    client: stub<KubernetesClient>(client),
    engine: stub<ManagerOptions["engine"]>({ up }),
    backend: { refusal: undefined, problem: async () => undefined, run: async () => {} },
    recorder: stub<EventRecorder>({ event: () => {}, flush: async () => {} }),
    planKey: async () => createSecretKey(Buffer.alloc(32)),
    metrics,
    namespace: "default",
    logger: pino({ level: "silent" }),
    concurrency: 2,
    driftIntervalMs: 60_000,
    relistIntervalMs: 1_800_000,
    gracePeriodMs: 0,
  });
  const stop = new AbortController();
  const ready = Promise.withResolvers<void>();
  const running = manager.run(stop.signal, async () => ready.resolve());
  await ready.promise;

  const serving = manager.serve(gadget);
  for (let turn = 0; turn < 100; turn++) await setImmediate(); // what can go on does
  ownedListed.resolve();
  await serving;
  while ((await metrics.reconcileTotal.get()).values.length === 0) await setImmediate();
  expect(up).not.toHaveBeenCalled(); // nothing is missing
  stop.abort();
  await running;
});
