import fs from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { LiveObject } from "../../providers/kubernetes/client";
import { kubernetesLeases } from "../../src/sharding/lease-store";
import { eventually } from "../../src/testing/eventually";
import { isCounted } from "../../stacks/kinds/podset/pods";
import { useDirectory } from "../directories";
import { untilCondition, untilGone, untilReady } from "../e2e/conditions";
import { namespace, POD, podSet, tenant, uniqueName } from "../e2e/manifests";
import { apply, client, edit, find, get, remove } from "../e2e/objects";
import { TestOperator, useReplicas } from "../e2e/operator";

const HOUR_MS = 3_600_000;
const SHARDS = 4;

/**
 * Loaded before the operator: what its own code reads of the clock is so much later, or earlier, as a file says when a
 * signal comes. The machine's clock, the Pulumi CLI's and that by which TLS judges certificates are as they were.
 */
const SETTABLE_CLOCK = `
const fs = require("node:fs");
const RealDate = Date;
let offset = 0;
const now = () => RealDate.now() + offset;
globalThis.Date = new Proxy(RealDate, {
  construct: (target, args, type) => Reflect.construct(target, args.length > 0 ? args : [now()], type),
  apply: () => new RealDate(now()).toString(),
  get: (target, name) => (name === "now" ? now : Reflect.get(target, name)),
});
process.on("SIGUSR2", () => {
  offset = Number(fs.readFileSync(process.env.CLOCK_OFFSET, "utf8"));
  console.log("the clock shows " + new Date().toISOString());
});
`;

const directory = useDirectory();
const leases = uniqueName("leases");
const store = kubernetesLeases(client, leases, 10_000);

beforeAll(async () => {
  await apply(namespace(leases));
  fs.writeFileSync(path.join(directory, "clock.cjs"), SETTABLE_CLOCK);
  fs.mkdirSync(path.join(directory, "state"));
  for (const index of [0, 1]) {
    const replica = new TestOperator({
      args: ["--concurrency", "2", "--shards", String(SHARDS), "--lease-namespace", leases],
      installCrds: index === 0,
      env: {
        PULUMI_BACKEND_URL: `file://${directory}/state`,
        PULUMI_CONFIG_PASSPHRASE: "the same for all",
        NODE_OPTIONS: `--require=${directory}/clock.cjs`,
        CLOCK_OFFSET: `${directory}/offset-${index}`,
      },
    });
    replicas.push(replica);
    await replica.start();
  }
});

afterAll(() => remove(namespace(leases)));
const replicas = useReplicas();

async function setClock(index: number, offsetMs: number): Promise<void> {
  const replica = replicas[index] as TestOperator;
  fs.writeFileSync(path.join(directory, `offset-${index}`), String(offsetMs));
  process.kill(replica.pid, "SIGUSR2");
  await eventually(() => {
    const shown = [...replica.log.matchAll(/the clock shows ([^\s"]+)/g)].at(-1)?.[1] ?? "";
    expect(Math.abs(Date.parse(shown) - Date.now() - offsetMs)).toBeLessThan(60_000);
  });
}

async function podsOf(name: string): Promise<LiveObject[]> {
  return (await client.list(POD, { namespace: "default", labelSelector: `app=${name}` })).items;
}

/** The one Pod of a PodSet, as it is now. */
function nextPod(name: string, before?: string): Promise<string> {
  return eventually(async () => {
    const [pod, ...others] = await podsOf(name);
    expect([pod !== undefined && isCounted(pod), others]).toEqual([true, []]);
    expect(pod?.metadata.name).not.toBe(before);
    return pod?.metadata.name ?? "";
  });
}

async function fail(pod: string): Promise<void> {
  await client.json("PATCH", `/api/v1/namespaces/default/pods/${pod}/status`, {
    contentType: "application/strategic-merge-patch+json",
    body: { status: { phase: "Failed" } },
  });
}

/** Who holds which shard, and how often it has changed hands. */
async function shards(): Promise<string[]> {
  const held = (await store.list()).filter(({ name }) => name.startsWith("kindstack-shard-"));
  return held.map(({ name, holder, transitions }) => `${name} ${holder} ${transitions}`).sort();
}

describe("two replicas, one whose clock is set forward and one whose clock is set back", () => {
  it.each([
    ["by six hours", 6 * HOUR_MS],
    ["the other way round", -6 * HOUR_MS],
    ["to what they were", 0],
  ])("%s, continue as before", async (_, offsetMs) => {
    await eventually(async () => {
      const holders = new Set((await shards()).map((shard) => shard.split(" ")[1]));
      expect([holders.size, holders.has("undefined")]).toEqual([2, false]);
    });
    const before = await shards();
    const waiting = Array.from({ length: 2 }, () => uniqueName("waiting"));
    const tenants = Array.from({ length: 4 }, () => tenant(uniqueName("tenant")));
    await Promise.all([...waiting.map((name) => podSet(name, 1)), ...tenants].map(apply));
    await Promise.all(tenants.map(untilReady));
    const ended = await Promise.all(
      waiting.map(async (name) => {
        const first = await nextPod(name);
        await fail(first);
        const second = await nextPod(name, first);
        await untilReady(podSet(name, 1));
        await fail(second);
        await untilCondition(podSet(name, 1), "Reconciling", "True", "BackOff");
        return second;
      }),
    );

    await Promise.all([setClock(0, offsetMs), setClock(1, -offsetMs)]);

    const added = Array.from({ length: 4 }, () => tenant(uniqueName("tenant")));
    const [edited, drifted, ...deleted] = tenants as [(typeof tenants)[0], (typeof tenants)[0]];
    const group = ["others"];
    await Promise.all([
      ...added.map(apply),
      edit(edited, { spec: { adminGroups: group } }),
      edit(namespace(drifted.metadata.name as string), { metadata: { labels: { "kindstack.dev/owner-uid": null } } }),
      ...deleted.map(remove),
    ]);
    await Promise.all([...added, edited].map(untilReady));
    const namespaceOf = ({ metadata }: (typeof tenants)[0]) => namespace(metadata.name as string);
    await eventually(async () => {
      expect((await get(namespaceOf(drifted))).metadata.labels).toHaveProperty(["kindstack.dev/owner-uid"]);
    });
    await Promise.all(deleted.map(untilGone));
    for (const object of deleted) expect(await find(namespaceOf(object))).toBeUndefined();
    await Promise.all(waiting.map((name, index) => nextPod(name, ended[index])));
    for (const replica of replicas) {
      // Of these, nothing is heard but once a minute that nothing has changed.
      const labels = { resource: "memcacheds.cache.example.com" };
      const seconds = await replica.metric("kindstack_informer_last_contact_seconds", labels);
      expect(seconds).toBeGreaterThanOrEqual(0);
      expect(seconds).toBeLessThan(150);
    }
    expect(await shards()).toEqual(before);
  });
});
