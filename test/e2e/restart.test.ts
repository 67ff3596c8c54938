import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import type { Manifest } from "../../providers/kubernetes/client";
import { TestDatabase } from "../providers/postgres/database";
import { eventually } from "./eventually";
import {
  apply,
  client,
  edit,
  find,
  get,
  namespace,
  postgresWriter,
  ROLE_BINDING,
  remove,
  tenant,
  uniqueName,
  untilGone,
  untilReady,
} from "./objects";
import { useOperator } from "./operator";

const database = new TestDatabase(inject("cluster").env);
let table = "";
beforeAll(async () => {
  await database.open();
  table = await database.createStudents();
});
afterAll(() => database.close());
const operator = useOperator({ args: ["--concurrency", "8"], env: { PSQL_DBNAME: database.name } });

/** One object of each kind, under one name. */
class Pair {
  readonly name: string;
  readonly tenant: Manifest;
  readonly writer: Manifest;

  constructor(name: string) {
    this.name = uniqueName(name);
    this.tenant = tenant(this.name);
    this.writer = postgresWriter(this.name, { table });
  }

  async apply(): Promise<void> {
    await Promise.all([apply(this.tenant), apply(this.writer)]);
  }

  async remove(): Promise<void> {
    await Promise.all([remove(this.tenant), remove(this.writer)]);
  }

  /** Waits until both are Ready, then looks at all that they stand for. */
  async expectWhole(): Promise<void> {
    await Promise.all([untilReady(this.tenant), untilReady(this.writer)]);
    expect(await this.rows()).toEqual([{ id: `default/${this.name}`, name: "alex", age: 23, country: "canada" }]);
    expect((await get(namespace(this.name))).metadata.annotations).toMatchObject({ adminEmail: "admin@example.com" });
    const { items } = await client.list(ROLE_BINDING, { namespace: this.name });
    expect(items.map(({ metadata }) => metadata.name).sort()).toEqual([
      `${this.name}-admin-rb`,
      `${this.name}-edit-rb`,
    ]);
    await eventually(async () => {
      // Nothing that was made is taken for something that was found.
      expect((await get(this.tenant)).status).toMatchObject({ namespaceCount: 1, adoptedNamespaces: [] });
    });
  }

  /** Waits until both are gone, then looks for what they may have left. */
  async expectGone(): Promise<void> {
    await Promise.all([untilGone(this.tenant), untilGone(this.writer)]);
    expect(await this.rows()).toEqual([]);
    expect(await find(namespace(this.name))).toBeUndefined();
    expect(operator.stateFiles(this.name)).toEqual([]);
  }

  rows(): Promise<unknown[]> {
    return database.query(`SELECT * FROM ${table} WHERE id LIKE $1`, [`%${this.name}%`]);
  }
}

/** Waits until the CLI processes of so many updates run at the same time. */
const untilUpdating = (count: number) =>
  eventually(() => expect(operator.updates().length).toBeGreaterThanOrEqual(count));

/** Waits until nothing runs any more, and looks for locks that nobody holds. */
const untilIdle = () =>
  eventually(() => {
    expect(operator.updates()).toEqual([]);
    expect(operator.stateFiles("/locks/")).toEqual([]);
  });

describe("a restart", () => {
  it("starts no update of what is as it should be, and writes nothing", async () => {
    const pair = new Pair("same");
    await pair.apply();
    await pair.expectWhole();
    const versions = () =>
      Promise.all([pair.tenant, pair.writer].map(async (object) => (await get(object)).metadata.resourceVersion));
    const before = await versions();

    await operator.restart();
    await eventually(async () => {
      expect(await operator.metric("controller_runtime_reconcile_total")).toBeGreaterThanOrEqual(2);
      expect(await operator.metric("controller_runtime_active_workers")).toBe(0);
    });

    expect(await operator.metric("kindstack_updates_total")).toBe(0);
    expect(operator.children()).toEqual([]);
    expect(await versions()).toEqual(before);
  });

  it("does what was asked for meanwhile", async () => {
    const [changed, deleted, added] = [new Pair("changed"), new Pair("deleted"), new Pair("added")];
    await Promise.all([changed.apply(), deleted.apply()]);
    await Promise.all([changed.expectWhole(), deleted.expectWhole()]);
    await operator.stop();
    await edit(changed.writer, { spec: { age: 24 } });
    await remove(namespace(changed.name));
    await Promise.all([deleted.remove(), added.apply()]);
    await operator.start();
    await Promise.all([added.expectWhole(), deleted.expectGone()]);
    await untilReady(changed.writer);
    expect(await changed.rows()).toMatchObject([{ age: 24 }]);
    await eventually(async () => {
      expect((await client.list(ROLE_BINDING, { namespace: changed.name })).items).toHaveLength(2);
    });
  });
});

describe("after a SIGKILL of the operator", () => {
  it.each([0, 120, 240, 360, 500])("%i ms into updates and deletions, a restart heals all", async (ms) => {
    const [old, fresh] = [new Pair(`old-${ms}`), new Pair(`fresh-${ms}`)];
    await old.apply();
    await old.expectWhole();

    await Promise.all([fresh.apply(), old.remove()]);
    await untilUpdating(ms === 0 ? 1 : 3);
    await delay(ms);
    await operator.kill();
    await operator.start();

    await Promise.all([fresh.expectWhole(), old.expectGone()]);
    await untilIdle();
  });
});

describe("after a SIGKILL of the CLI alone", () => {
  it.each([0, 150, 300])("%i ms into updates and deletions, the operator tries again", async (ms) => {
    const [old, fresh] = [new Pair(`old-${ms}`), new Pair(`fresh-${ms}`)];
    await old.apply();
    await old.expectWhole();

    await Promise.all([fresh.apply(), old.remove()]);
    await untilUpdating(3);
    await delay(ms);
    for (const { pid } of operator.updates()) process.kill(pid, "SIGKILL");

    await Promise.all([fresh.expectWhole(), old.expectGone()]);
    await untilIdle();
  });
});

describe("a stop while updates run", () => {
  it("lets them end and says so in the status", async () => {
    const pair = new Pair("stopped");
    await pair.apply();
    await untilUpdating(2);
    await operator.stop();

    await pair.expectWhole(); // with no operator there
    await operator.start();
    await eventually(async () => {
      expect(await operator.metric("controller_runtime_reconcile_total")).toBeGreaterThanOrEqual(2);
    });
    expect(await operator.metric("kindstack_updates_total")).toBe(0);
  });

  it("interrupts them when there is no time, and the next start goes on with them", async () => {
    await operator.restart({ args: ["--grace-period", "0"] });
    const pair = new Pair("interrupted");
    await pair.apply();
    await untilUpdating(2);
    await operator.stop();

    await operator.start();
    await pair.expectWhole();
    await pair.remove();
    await pair.expectGone();
    await untilIdle();
  });
});
