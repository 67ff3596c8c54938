import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { get, install, kubectl, NAMESPACE, pods, prepareInstallation, rolledOut, uninstall } from "./installation";
import { createWriters, deleteWriters, settled } from "./load";

/* Three replicas on two nodes share the work. */

const LOAD = 300;
let values: string;

beforeAll(async () => {
  values = await prepareInstallation({ replicas: 3, shards: 6 });
  await install(values);
  await rolledOut();
});
afterAll(async () => {
  await kubectl("delete namespace load-0 load-1 load-2 --ignore-not-found --wait=false");
  await uninstall(values);
});

interface Lease {
  metadata: { name: string };
  spec: { holderIdentity?: string };
}

async function holders(): Promise<string[]> {
  const { items } = await get<{ items: Lease[] }>(`leases -n ${NAMESPACE}`);
  return items
    .filter(({ metadata }) => metadata.name.startsWith("kindstack-shard-"))
    .map(({ spec }) => spec.holderIdentity ?? "");
}

it("run on both nodes, and each holds shards", async () => {
  expect(new Set((await pods()).map(({ spec }) => spec.nodeName)).size).toBe(2);
  await expect.poll(async () => new Set(await holders()).size, { timeout: 60_000 }).toBe(3);
  expect(await holders()).toHaveLength(6);
});

it("lose nothing when one of them is gone from one moment to the next", async () => {
  const created = createWriters("replicas", LOAD);
  await delay(2_000); // in the middle of it
  const [victim] = await pods();
  await kubectl(`delete pod -n ${NAMESPACE} ${victim?.metadata.name} --grace-period=0 --force`);
  await created;
  await rolledOut();
  await settled(LOAD);
  await deleteWriters();
});
