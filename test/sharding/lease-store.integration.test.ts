import { beforeEach, describe, expect, it } from "vitest";
import { known } from "../../providers/kubernetes/client";
import { kubernetesLeases, LeaseConflict } from "../../src/sharding/lease-store";
import { TestCluster } from "../providers/kubernetes/test-cluster";

const cluster = TestCluster.use();
const store = kubernetesLeases(cluster.client, cluster.namespace, 10_000);

let name = "";
let count = 0;
beforeEach(() => {
  name = `kindstack-shard-${count++}`;
});

const LEASE = { apiVersion: "coordination.k8s.io/v1", kind: "Lease", plural: "leases", namespaced: true };

describe("a Lease in the cluster", () => {
  it("is made with its holder, as people and other tools expect it", async () => {
    const made = await store.create(name, { holder: "a", transitions: 0, shards: 4, leaseDurationMs: 15_000 });
    expect(made).toMatchObject({ name, holder: "a", transitions: 0, shards: 4 });
    expect(await store.list()).toContainEqual(made);
    expect(await known(cluster.client.get(LEASE, name, cluster.namespace))).toMatchObject({
      spec: { holderIdentity: "a", leaseDurationSeconds: 15, leaseTransitions: 0, acquireTime: expect.any(String) },
    });
  });

  it("is made by one only", async () => {
    const attempts = ["a", "b", "c"].map((holder) => store.create(name, { holder }));
    const results = await Promise.allSettled(attempts);
    expect(results.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected", "rejected"]);
    await expect(store.create(name, { holder: "d" })).rejects.toThrow(LeaseConflict);
  });

  it("is taken by one only of those who have seen it free", async () => {
    const free = await store.create(name, { holder: undefined });
    const results = await Promise.allSettled(["a", "b", "c"].map((holder) => store.update(free, { holder })));
    expect(results.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected", "rejected"]);
  });

  it("changes its version with every renewal, and is free when its holder says so", async () => {
    const made = await store.create(name, { holder: "a", shards: 2 });
    const renewed = await store.update(made, { holder: "a", shards: undefined });
    expect(renewed).toMatchObject({ uid: made.uid, holder: "a", shards: undefined });
    expect(renewed.version).not.toBe(made.version);
    expect(await store.update(renewed, { holder: undefined })).toMatchObject({ holder: undefined });
  });

  it("is not made again by a renewal that comes after its end, nor by one of a namesake", async () => {
    const made = await store.create(name, { holder: "a" });
    await store.remove(made);
    await expect(store.update(made, { holder: "a" })).rejects.toThrow(LeaseConflict);
    const namesake = await store.create(name, { holder: "b" });
    await expect(store.update(made, { holder: "a" })).rejects.toThrow(LeaseConflict);
    await store.remove(made);
    expect(await store.list()).toContainEqual(namesake);
  });
});
