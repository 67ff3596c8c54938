import { beforeAll, describe, expect, it } from "vitest";
import type { LiveObject, Manifest } from "../../providers/kubernetes/client";
import { eventually } from "../../src/testing/eventually";
import { STUDENTS, useDatabase } from "../providers/postgres/database";
import { applyUntilReady, conditionOf, removeUntilGone, untilCondition, untilGone, untilReady } from "./conditions";
import {
  capsuleTenant,
  configMap,
  memcached,
  namespace,
  objectOf,
  podSet,
  postgresWriter,
  ROLE_BINDING,
  tenant,
  uniqueName,
} from "./manifests";
import { apply, edit, eventsAbout, find, get, remove, requestUpdate, setFinalizers } from "./objects";
import { useOperator } from "./operator";

/* What waits for something else to end holds no worker: here there are two. */

const WORKERS = 2;
const HELD = "example.com/held";

const database = useDatabase();
beforeAll(() => database.query(`CREATE TABLE students (${STUDENTS})`));
const operator = useOperator({
  args: ["--concurrency", String(WORKERS)],
  env: { PSQL_DBNAME: database.name },
});

/** Another user's PostgresWriter is made and deleted, which takes a worker. */
async function expectRoomForOthers(): Promise<void> {
  const other = postgresWriter(uniqueName("other"), {});
  await applyUntilReady(other);
  await removeUntilGone(other);
}

/** So many Tenants, Ready, of one namespace each, which has its name and what `content` makes in it. */
async function tenants(count: number, content: (namespace: string) => Manifest[]): Promise<string[]> {
  const names = Array.from({ length: count }, () => uniqueName("waiting"));
  await Promise.all(names.map((name) => applyUntilReady(tenant(name))));
  await Promise.all(names.flatMap(content).map(apply));
  return names;
}

/** What holds its namespace. */
const held = (namespace: string): Manifest => {
  return { ...configMap("cm", namespace), metadata: { name: "cm", namespace, finalizers: [HELD] } };
};

async function untilAllGone(references: Manifest[]): Promise<void> {
  await eventually(async () => {
    const left = await Promise.all(references.map(find));
    expect(left.filter((object) => object !== undefined).map(({ metadata }) => metadata.name)).toEqual([]);
  });
}

async function warningsAbout(object: LiveObject): Promise<unknown[]> {
  return (await eventsAbout(object)).filter(({ type }) => type === "Warning");
}

it("Tenants that are deleted while their namespaces hold PostgresWriters are gone, with their rows and states, while others are served", async () => {
  const names = await tenants(4 * WORKERS, (name) => [postgresWriter("row", {}, name)]);
  for (const name of names) await untilReady(postgresWriter("row", {}, name));

  await Promise.all(names.map((name) => remove(tenant(name))));
  await Promise.all([untilAllGone(names.map((name) => tenant(name))), expectRoomForOthers()]);

  expect((await Promise.all(names.map((name) => find(namespace(name))))).filter(Boolean)).toEqual([]);
  expect(await database.query("SELECT id FROM students WHERE id LIKE 'waiting-%'")).toEqual([]);
  await eventually(() => expect(operator.stateFiles("tenant.waiting")).toEqual([]));
});

it("Tenants whose namespaces hold something with a finalizer say what they wait for, without a warning or an update, and go when that goes", async () => {
  const names = await tenants(2 * WORKERS, (name) => [held(name)]);
  const [first = ""] = names;
  const objects = await Promise.all(names.map((name) => get(tenant(name))));

  await Promise.all(names.map((name) => remove(tenant(name))));
  await expectRoomForOthers();
  await eventually(async () => {
    const ready = conditionOf(await get(tenant(first)), "Ready");
    expect(ready).toMatchObject({ status: "False", reason: "Deleting" });
    expect(ready.message).toContain(`Namespace ${first} is being deleted`);
    expect(ready.message).toContain(`${HELD} in 1 resource instances`);
  });
  const updates = () => operator.updates({ kind: "tenants.multitenancy.codereliant.io" });
  const before = await updates();
  await expectRoomForOthers();
  expect(await updates()).toBe(before);
  for (const object of objects) expect(await warningsAbout(object)).toEqual([]);

  await Promise.all(names.map((name) => setFinalizers(held(name), null)));
  await untilAllGone(names.map((name) => tenant(name)));
  expect(await updates()).toBe(before + names.length); // of each, the one that ends its stack
});

it("Tenants whose namespaces were deleted by hand and hold something with a finalizer say what they wait for, serve what does not, and are Ready with new namespaces when it is gone", async () => {
  const names = await tenants(2 * WORKERS, (name) => [held(name), postgresWriter("row", {}, name)]);
  const [first = ""] = names;
  await Promise.all(names.map((name) => remove(namespace(name))));
  await expectRoomForOthers();
  const waiting = await untilCondition(tenant(first), "Ready", "False", "Terminating");
  expect(conditionOf(waiting, "Ready").message).toContain(`Namespace ${first} is being deleted`);
  expect(conditionOf(waiting, "Reconciling")).toMatchObject({ status: "True", reason: "Waiting" });
  expect(await warningsAbout(waiting)).toEqual([]);

  // What does not depend on it is applied all the same.
  const more = `${first}-more`;
  await apply(tenant(first, { namespaces: [first, more], adminGroups: ["others"] }));
  await eventually(async () => {
    const binding = await get(objectOf(ROLE_BINDING, `${more}-admin-rb`, more));
    expect(binding).toMatchObject({ subjects: [{ name: "others" }] });
  });

  await Promise.all(names.map((name) => setFinalizers(held(name), null)));
  for (const name of names) await untilReady(tenant(name));
  expect((await get(namespace(first))).metadata.deletionTimestamp).toBeUndefined();
  await Promise.all(names.map((name) => remove(tenant(name))));
  await untilAllGone(names.map((name) => tenant(name)));
});

describe("objects that another controller's finalizer keeps", () => {
  it.each([
    ["PostgresWriter", () => postgresWriter(uniqueName("kept"), {})],
    ["Memcached", () => memcached(uniqueName("kept"))],
    ["PodSet", () => podSet(uniqueName("kept"), 1)],
    ["Tenant", () => tenant(uniqueName("kept"))],
    ["Capsule Tenant", () => capsuleTenant(uniqueName("kept"))],
  ])("say so when all that a %s made is gone, and do nothing until they go", async (_kind, make) => {
    const object = make();
    object.metadata.finalizers = [HELD];
    await applyUntilReady(object);
    await remove(object);
    const message = `Kindstack is done; the object waits for its other finalizers: ${HELD}`;
    await eventually(async () => {
      const left = await get(object);
      expect(left.metadata.finalizers).toEqual([HELD]);
      for (const type of ["Synced", "Reconciling"]) expect(conditionOf(left, type).message).toBe(message);
      expect(conditionOf(left, "Ready")).toMatchObject({ status: "False", reason: "Deleting", message });
    });
    if (object.kind === "PostgresWriter") {
      expect(await database.query(`SELECT * FROM students WHERE id = 'default/${object.metadata.name}'`)).toEqual([]);
    }
    await eventually(() => expect(operator.stateFiles(`${object.metadata.name}`)).toEqual([]));

    const before = await operator.updates();
    await requestUpdate(object, "now");
    await edit(object, { metadata: { labels: { a: "b" } } });
    await expectRoomForOthers();
    expect(conditionOf(await get(object), "Ready").message).toBe(message);
    expect(await operator.updates()).toBe(before + 2); // the other user's
    await setFinalizers(object, null);
    await untilGone(object);
  });
});
