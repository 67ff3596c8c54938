import { setTimeout as delay } from "node:timers/promises";
import { expect, it } from "vitest";
import { cpuSeconds } from "../../bench/processes";
import { known, type LiveObject, type ResourceType } from "../../providers/kubernetes/client";
import { eventually } from "../../src/testing/eventually";
import { findCondition } from "../../stacks/contract/condition";
import { statusOf } from "../../stacks/contract/kind";
import { MISTAKES, useHostilePackage } from "./hostile-module";
import { MEMCACHED, uniqueName } from "./manifests";
import { client } from "./objects";
import { TestOperator, useReplicas } from "./operator";

/** Ten are asked for; fewer try the test itself out. */
const MINUTES = Number(process.env.KINDSTACK_MINUTES ?? 10);
/** 5 % of a core in ten minutes. The first tries take most of it. */
const MOST_SECONDS = 30;
const GRACE_SECONDS = 10;
const SAMPLE_MS = 250;
const OTHERS = 200;

const { folder, odd, oddSdk } = useHostilePackage();
const replicas = useReplicas();

const create = async (type: ResourceType, spec: object) => {
  const name = uniqueName(type.plural);
  const metadata = { name, namespace: "default" };
  await client.create({ apiVersion: type.apiVersion, kind: type.kind, metadata, spec });
  return { type, name };
};
type Created = Awaited<ReturnType<typeof create>>;

const conditionOf = async ({ type, name }: Created, condition: string) => {
  const object = await known(client.get(type, name, "default"));
  return object && findCondition(statusOf(object).conditions, condition);
};
/** Memcacheds with what their conditions say, by their names. */
const memcacheds = async () => {
  const { items } = await client.list(MEMCACHED, { namespace: "default" });
  const conditionsOf = (object: LiveObject) =>
    ["Synced", "Ready"].map((type) => findCondition(statusOf(object).conditions, type));
  return new Map(items.map((object) => [object.metadata.name, conditionsOf(object)]));
};
const deleteAll = async (objects: readonly Created[]) => {
  for (const { type, name } of objects) await client.delete(type, name, "default");
  for (const { type, name } of objects) {
    await eventually(async () => expect(await known(client.get(type, name, "default"))).toBeUndefined());
  }
};

/** CPU time of each process of a package, until the returned function is called. */
function measureChildren(operator: TestOperator): () => Promise<number[]> {
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
    return [...byPid.values()];
  };
}

it(`takes at most 5 % of a core in ten minutes, beside ${OTHERS} objects that notice nothing`, {
  timeout: (MINUTES + 20) * 60_000,
}, async () => {
  const args = ["--kinds", `memcacheds,${folder}`, "--grace-period", `${GRACE_SECONDS}`];
  const operator = new TestOperator({ args });
  replicas.push(operator);
  await operator.start();
  const others = await Promise.all(
    Array.from({ length: OTHERS }, () => create(MEMCACHED, { size: 1, containerPort: 11211 })),
  );
  const isTrue = expect.objectContaining({ status: "True" });
  await eventually(async () => {
    const now = await memcacheds();
    expect(others.map(({ name }) => now.get(name))).toEqual(others.map(() => [isTrue, isTrue]));
  });
  const pid = operator.pid;
  const before = await memcacheds();

  const measured = measureChildren(operator);
  const startedAt = performance.now();
  const wrong: Created[] = [];
  for (const mode of [...Object.keys(MISTAKES), "leak"]) {
    for (const type of [odd, oddSdk]) wrong.push(await create(type, { mode, where: "program" }));
    wrong.push(await create(odd, { mode, where: "report" }));
  }
  await delay(MINUTES * 60_000 - (performance.now() - startedAt));
  const times = await measured();
  const seconds = times.reduce((sum, time) => sum + time, 0);
  const percent = (seconds / (MINUTES * 60)) * 100;
  console.log(
    `${times.length} processes of the package: ${seconds.toFixed(1)} s of CPU time, ${percent.toFixed(1)} % of a core`,
  );

  expect(operator.pid).toBe(pid);
  expect(await memcacheds()).toEqual(before);
  expect(seconds).toBeLessThanOrEqual(MOST_SECONDS);

  // Stopped while a program hangs, which has a minute for itself.
  const hanging = await create(odd, { mode: "hang", where: "program" });
  await eventually(async () => expect(await conditionOf(hanging, "Reconciling")).toMatchObject({ status: "True" }));
  const stopAt = performance.now();
  await operator.stop();
  expect(performance.now() - stopAt).toBeLessThan(3 * GRACE_SECONDS * 1000);

  await operator.start();
  await deleteAll([...wrong, hanging, ...others]);
});
