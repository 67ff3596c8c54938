import { setTimeout as delay } from "node:timers/promises";
import { expect, it } from "vitest";
import { cpuSeconds } from "../../bench/processes";
import { known, type ResourceType } from "../../providers/kubernetes/client";
import { eventually } from "../../src/testing/eventually";
import { findCondition } from "../../stacks/contract/condition";
import { statusOf } from "../../stacks/contract/kind";
import { MISTAKES, useHostilePackage } from "./hostile-module";
import { client, MEMCACHED, uniqueName } from "./objects";
import { TestOperator, useReplicas } from "./operator";

const MINUTES = 10;
const SAMPLE_MS = 300;
const OTHERS = 200;

const { folder, odd, oddSdk } = useHostilePackage();
const replicas = useReplicas();

const create = async (type: ResourceType, spec: object) => {
  const name = uniqueName(type.plural);
  const metadata = { name, namespace: "default" };
  await client.create({ apiVersion: type.apiVersion, kind: type.kind, metadata, spec });
  return name;
};
const synced = async (type: ResourceType, name: string) => {
  const object = await known(client.get(type, name, "default"));
  return object && findCondition(statusOf(object).conditions, "Synced");
};

/** CPU time of the processes of packages, until the returned function is called. */
function measureChildren(operator: TestOperator): () => Promise<number> {
  const byPid = new Map<number, number>();
  const stop = new AbortController();
  const sampling = (async () => {
    while (!stop.signal.aborted) {
      for (const { pid, command } of operator.children()) {
        if (!command.includes("packages/child.js")) continue;
        const cpu = await cpuSeconds(pid).catch(() => undefined);
        if (cpu !== undefined) byPid.set(pid, cpu.own);
      }
      await delay(SAMPLE_MS);
    }
  })();
  return async () => {
    stop.abort();
    await sampling;
    return [...byPid.values()].reduce((sum, seconds) => sum + seconds, 0);
  };
}

it(`takes at most 5 % of a core in ${MINUTES} minutes, beside ${OTHERS} objects that notice nothing`, {
  timeout: (MINUTES + 15) * 60_000,
}, async () => {
  const operator = new TestOperator({ args: ["--kinds", `memcacheds,${folder}`, "--grace-period", "10"] });
  replicas.push(operator);
  await operator.start();
  const names = await Promise.all(
    Array.from({ length: OTHERS }, () => create(MEMCACHED, { size: 1, containerPort: 11211 })),
  );
  for (const name of names) {
    await eventually(async () => expect(await synced(MEMCACHED, name)).toMatchObject({ status: "True" }));
  }
  const pid = operator.pid;
  const conditions = () => Promise.all(names.map((name) => synced(MEMCACHED, name)));
  const before = await conditions();

  const measured = measureChildren(operator);
  const startedAt = performance.now();
  for (const mode of [...Object.keys(MISTAKES), "leak"]) {
    for (const type of [odd, oddSdk]) await create(type, { mode, where: "program" });
    await create(odd, { mode, where: "report" });
  }
  await delay(MINUTES * 60_000 - (performance.now() - startedAt));
  const seconds = await measured();
  const percent = (seconds / (MINUTES * 60)) * 100;
  console.log(`CPU time of the package's processes: ${seconds.toFixed(1)} s, ${percent.toFixed(1)} % of a core`);

  expect(operator.pid).toBe(pid);
  expect(await conditions()).toEqual(before);
  expect(percent).toBeLessThanOrEqual(5);
  const stopAt = performance.now();
  await operator.stop();
  expect(performance.now() - stopAt).toBeLessThan(60_000);
});
