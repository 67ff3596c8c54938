import { afterEach, beforeAll, expect, it } from "vitest";
import { known, type ResourceType } from "../../providers/kubernetes/client";
import { eventually } from "../../src/testing/eventually";
import { DELETION_POLICY_ANNOTATION } from "../../stacks/contract/annotations";
import { findCondition } from "../../stacks/contract/condition";
import { statusOf } from "../../stacks/contract/kind";
import { MISTAKES, useHostilePackage } from "./hostile-module";
import { CONFIG_MAP, MEMCACHED, uniqueName } from "./manifests";
import { client } from "./objects";
import { useOperator } from "./operator";

/*
 * A package whose code would end the process in which it runs, or hold it: its objects say so, and nothing else notices.
 */

const { folder, odd: ODD, oddSdk: ODD_SDK } = useHostilePackage();

const operator = useOperator({
  args: [
    ...["--kinds", `memcacheds,${folder}`, "--concurrency", "4"],
    ...["--kind-memory", "128", "--kind-timeout", "3", "--update-timeout", "10"],
  ],
});

const create = async (type: ResourceType, spec: object, annotations = {}) => {
  const name = uniqueName(type.plural);
  const metadata = { name, namespace: "default", annotations };
  await client.create({ apiVersion: type.apiVersion, kind: type.kind, metadata, spec });
  return name;
};
const odd = (mode: string, where = "program", { type = ODD, annotations = {} } = {}) =>
  create(type, { mode, where }, annotations);
const conditionOf = async (type: ResourceType, name: string, condition: string) => {
  const object = await known(client.get(type, name, "default"));
  return object && findCondition(statusOf(object).conditions, condition);
};
const untilCondition = (type: ResourceType, name: string, condition: string, expected: object) =>
  eventually(async () => expect(await conditionOf(type, name, condition)).toMatchObject(expected));
const untilSynced = (type: ResourceType, name: string) => untilCondition(type, name, "Synced", { status: "True" });
const untilGone = (type: ResourceType, name: string) =>
  eventually(async () => expect(await known(client.get(type, name, "default"))).toBeUndefined());
const deleted = async (type: ResourceType, name: string) => {
  await client.delete(type, name, "default");
  await untilGone(type, name);
};

let others: string[] = [];
const syncedOthers = () => Promise.all(others.map((name) => conditionOf(MEMCACHED, name, "Synced")));
let before: Awaited<ReturnType<typeof syncedOthers>>;
beforeAll(async () => {
  others = await Promise.all(Array.from({ length: 5 }, () => create(MEMCACHED, { size: 1, containerPort: 11211 })));
  for (const name of others) await untilSynced(MEMCACHED, name);
  before = await syncedOthers();
});
/** In one process, without a failure in between, and new ones are served. */
afterEach(async () => {
  expect(await syncedOthers()).toEqual(before);
  await deleted(
    MEMCACHED,
    await create(MEMCACHED, { size: 1, containerPort: 11211 }).then(async (name) => {
      await untilSynced(MEMCACHED, name);
      return name;
    }),
  );
});

it("a program that does what a mistake does fails its object alone, whatever else does so meanwhile", async () => {
  const pid = operator.pid;
  const types = [ODD, ODD_SDK];
  const wrong = Object.entries(MISTAKES).flatMap(([mode, reason]) =>
    types.map((type) => ({ type, mode, reason: mode === "hang" && type === ODD_SDK ? "Timeout" : reason })),
  );
  const names = await Promise.all(wrong.map(({ type, mode }) => odd(mode, "program", { type })));
  const fine = await Promise.all(types.map(async (type) => [type, await odd("fine", "program", { type })] as const));
  await Promise.all(fine.map(([type, name]) => untilSynced(type, name)));
  for (const [index, { type, reason }] of wrong.entries()) {
    await untilCondition(type, names[index] ?? "", "Synced", { status: "False", reason });
  }
  await Promise.all(wrong.map(({ type }, index) => deleted(type, names[index] ?? "")));
  expect(operator.pid).toBe(pid);
});

it("an error that comes after the update is told of the object", async () => {
  const name = await odd("late");
  await untilSynced(ODD, name);
  await eventually(async () => {
    const events = await client.list({ apiVersion: "events.k8s.io/v1", kind: "Event" }, { namespace: "default" });
    expect(events.items).toContainEqual(
      expect.objectContaining({
        reason: "InternalError",
        note: expect.stringContaining(`thrown by ${name}`),
        regarding: expect.objectContaining({ name }),
      }),
    );
  });
  expect(await known(client.get(CONFIG_MAP, name, "default"))).toMatchObject({ data: { mode: "late" } });
});

it("an object whose validation ends its process is not Ready, and can be deleted", async () => {
  const name = await odd("loop", "validate");
  await untilCondition(ODD, name, "Synced", { status: "False", reason: "ProgramTimedOut" });
  await untilCondition(ODD, name, "Ready", { status: "False", reason: "ProgramTimedOut" });
  await deleted(ODD, name);
});

it("an object whose provider cannot delete stays, and says why; with the policy Orphan, it goes", async () => {
  const annotations = { [DELETION_POLICY_ANNOTATION]: "Orphan" };
  const kept = await odd("abort", "delete");
  const orphan = await odd("abort", "delete", { annotations });
  const fine = await odd("fine", "delete");
  for (const name of [kept, orphan, fine]) await untilSynced(ODD, name);
  for (const name of [kept, orphan, fine]) await client.delete(ODD, name, "default");
  await untilGone(ODD, orphan);
  await untilGone(ODD, fine);
  expect(await known(client.get(CONFIG_MAP, orphan, "default"))).toBeDefined();
  // Its own end, not that of what ended the process before.
  const message = expect.stringContaining("ProgramFailed: delete of a provider: the process of the kind's code ended");
  await untilCondition(ODD, kept, "Synced", { status: "False", reason: "DeletionFailed", message });
  const metadata = { name: kept, namespace: "default", annotations };
  await client.apply({ apiVersion: ODD.apiVersion, kind: ODD.kind, metadata }, { fieldManager: "test" });
  await untilGone(ODD, kept);
});
