import { describe, expect, it } from "vitest";
import type { LiveObject } from "../../../../providers/kubernetes/client";
import type { KindObject } from "../../../../stacks/contract/object";
import type { MemcachedSpec } from "../../../../stacks/kinds/memcached/schema";
import { memcachedConditions } from "../../../../stacks/kinds/memcached/status";

function memcached(size: number, metadata: Partial<KindObject["metadata"]> = {}): KindObject<MemcachedSpec> {
  return {
    apiVersion: "cache.example.com/v1alpha1",
    kind: "Memcached",
    metadata: { name: "cache", namespace: "default", uid: "uid", resourceVersion: "1", generation: 1, ...metadata },
    spec: { size, containerPort: 11211 },
    status: { observedGeneration: 1, conditions: [] },
  };
}

/** A Deployment with so many available Pods of those that it wants. */
function deployment(replicas: number, available: number, { observed = true } = {}): LiveObject {
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "cache", namespace: "default", uid: "uid-d", resourceVersion: "2", generation: 3 },
    spec: { replicas },
    status: {
      observedGeneration: observed ? 3 : 2,
      updatedReplicas: replicas,
      availableReplicas: available,
      conditions: [
        {
          type: "Available",
          status: available === replicas ? "True" : "False",
          message: "Deployment does not have minimum availability.",
        },
      ],
    },
  };
}

/** A Deployment whose Pods a quota refuses. */
const failing = deployment(1, 0);
const refusal = { type: "ReplicaFailure", status: "True", reason: "FailedCreate", message: "failed quota: q" };
(failing.status as { conditions: object[] }).conditions.push(refusal);

const summary = (object: KindObject<MemcachedSpec>, owned: LiveObject[], failure?: string) => {
  const conditions = memcachedConditions(object, owned, failure);
  expect(conditions.map(({ type }) => type)).toEqual(["Available", "Progressing", "Degraded"]);
  return [...conditions.map(({ status }) => status), ...new Set(conditions.map(({ reason }) => reason))].join(" ");
};
const messageOf = (type: string, ...situation: Parameters<typeof memcachedConditions>) =>
  memcachedConditions(...situation).find((condition) => condition.type === type)?.message;

/** One whose size an autoscaler has. */
const scaled = (size: number) =>
  memcached(size, { annotations: { "kindstack.dev/ignore-fields": "Deployment/cache:spec.replicas" } });
const deleting = memcached(1, { deletionTimestamp: "2026-01-01T00:00:00Z" });
const failed = "the API server is away";

describe("the conditions of a Memcached", () => {
  const unobserved = deployment(2, 2, { observed: false });

  /** The statuses of Available, Progressing and Degraded, and the reason that all three have. */
  it.each<[string, string, ...Parameters<typeof summary>]>([
    ["before there is a Deployment", "Unknown True False Reconciling", memcached(1), []],
    ["whose replicas an autoscaler has", "True False False Reconciling", scaled(1), [deployment(3, 3)]],
    ["while its Pods start", "False True False Reconciling", memcached(2), [deployment(2, 1)]],
    ["when all Pods are available", "True False False Reconciling", memcached(2), [deployment(2, 2)]],
    ["whose Deployment has an earlier status", "True True False Reconciling", memcached(2), [unobserved]],
    ["of another size than the Deployment has", "True True False Resizing", memcached(3), [deployment(2, 2)]],
    ["whose Deployment could not be made", "False True True Reconciling", memcached(1), [], failed],
    ["whose Pods are refused", "False True True Reconciling", memcached(1), [failing]],
    ["that runs and could not be resized", "True True True Resizing", memcached(3), [deployment(2, 2)], failed],
    ["while it is deleted", "False True Unknown Finalizing", deleting, [deployment(1, 1)]],
    ["whose deletion failed", "False True True Finalizing", deleting, [deployment(1, 1)], failed],
  ])("%s: %s", (_, expected, ...situation) => {
    expect(summary(...situation)).toBe(expected);
  });

  it("have the messages of the operator that they are from", () => {
    expect(messageOf("Available", memcached(2), [deployment(2, 2)], undefined)).toBe(
      "Deployment for custom resource (cache) with 2 replicas created successfully",
    );
    expect(messageOf("Available", memcached(1), [], undefined)).toBe("Starting reconciliation");
    expect(messageOf("Available", memcached(1), [], failed)).toBe(
      "Failed to create Deployment for the custom resource (cache): (the API server is away)",
    );
    expect(messageOf("Available", memcached(3), [deployment(2, 2)], failed)).toBe(
      "Failed to update the size for the custom resource (cache): (the API server is away)",
    );
    expect(messageOf("Degraded", deleting, [], undefined)).toBe(
      "Performing finalizer operations for the custom resource: cache",
    );
    expect(messageOf("Degraded", deleting, [], failed)).toBe(
      "Finalizer operations for custom resource cache failed: the API server is away",
    );
  });

  it("say how many are available, and what the Deployment itself says when they are too few", () => {
    expect(messageOf("Progressing", memcached(3), [deployment(3, 2)], undefined)).toBe(
      "2 of 3 instances are available",
    );
    expect(messageOf("Available", memcached(3), [deployment(3, 2)], undefined)).toBe(
      "Deployment does not have minimum availability.",
    );
  });
});
