import { expect, it } from "vitest";
import type { KubernetesClient } from "../../providers/kubernetes/client";
import { kubernetesLeases, type LeaseRecord, type LeaseStore } from "../../src/sharding/lease-store";
import { stub } from "../stub";

const record: LeaseRecord = { name: "a", uid: "1", version: "1", holder: "a", transitions: 0, shards: 1 };

/** An API server that is cut off in the middle of a request: only a signal ends it. */
async function unanswered(...given: unknown[]): Promise<never> {
  const { signal } = given.at(-1) as { signal: AbortSignal };
  return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
}

it.each<[string, (store: LeaseStore) => Promise<unknown>]>([
  ["list", (store) => store.list()],
  ["create", (store) => store.create("a", { holder: "a" })],
  ["update", (store) => store.update(record, { holder: "a" })],
  ["remove", (store) => store.remove(record)],
])("gives up a request without an answer, before the Leases of this replica end: %s", async (_, request) => {
  const client = { list: unanswered, create: unanswered, mergePatch: unanswered, delete: unanswered };
  const store = kubernetesLeases(stub<KubernetesClient>(client), "default", 1);
  await expect(request(store)).rejects.toThrow("aborted due to timeout");
});
