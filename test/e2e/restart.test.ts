import { beforeAll, describe, expect, it } from "vitest";
import type { Manifest } from "../../providers/kubernetes/client";
import { eventually } from "../../src/testing/eventually";
import { useDatabase } from "../providers/postgres/database";
import { applyUntilReady, untilGone, untilReady } from "./conditions";
import { namespace, postgresWriter, ROLE_BINDING, tenant, uniqueName } from "./manifests";
import { apply, client, edit, find, get, remove } from "./objects";
import { useOperator } from "./operator";

const database = useDatabase();
let table = "";
beforeAll(async () => {
  table = await database.createStudents();
});
const operator = useOperator({
  args: ["--concurrency", "8"],
  env: { PSQL_DBNAME: database.name },
});

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

  /** Waits until both are Ready, then looks at all their resources and at what they say of it. */
  async expectWhole(): Promise<void> {
    await this.expectMade();
    await eventually(async () => {
      const { status } = await get(this.tenant);
      expect(status).toMatchObject({ namespaceCount: 1 });
      expect(status).not.toHaveProperty("adoptedNamespaces"); // what was made is not taken for what was found
    });
  }

  async expectMade(): Promise<void> {
    await Promise.all([untilReady(this.tenant), untilReady(this.writer)]);
    expect(await this.rows()).toEqual([{ id: `default/${this.name}`, name: "alex", age: 23, country: "canada" }]);
    expect((await get(namespace(this.name))).metadata.annotations).toMatchObject({ adminEmail: "admin@example.com" });
    const { items } = await client.list(ROLE_BINDING, { namespace: this.name });
    expect(items.map(({ metadata }) => metadata.name).sort()).toEqual([
      `${this.name}-admin-rb`,
      `${this.name}-edit-rb`,
    ]);
  }

  /** Waits until both are gone, then looks for what they may have left. */
  async expectGone(): Promise<void> {
    await Promise.all([untilGone(this.tenant), untilGone(this.writer)]);
    expect(await this.rows()).toEqual([]);
    expect(await find(namespace(this.name))).toBeUndefined();
    // An operator that is killed before it has the proof of a destroy removed leaves that for a month.
    const isOfStack = (file: string) => !file.includes("/kindstack-destroyed/");
    await eventually(() => expect(operator.stateFiles(this.name).filter(isOfStack)).toEqual([]));
  }

  rows(): Promise<unknown[]> {
    return database.query(`SELECT * FROM ${table} WHERE id LIKE $1`, [`%${this.name}%`]);
  }
}

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
    await eventually(() => expect(operator.children()).toEqual([])); // that the engine can be started was seen
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

it("the rows of a cluster that was rebuilt are taken over at once, as it has its former name", async () => {
  const name = uniqueName("rebuilt");
  const writer = postgresWriter(name, { table });
  await applyUntilReady(writer);
  await operator.stop();
  await database.query(
    "UPDATE kindstack_ownership.records SET owner = 'former', incarnation = 'former', cluster_uid = 'former' WHERE key = $1",
    [`default/${name}`],
  );
  await edit(writer, { spec: { age: 24 } });
  await operator.start();
  await untilReady(writer);
  expect(await database.query(`SELECT age FROM ${table} WHERE id = $1`, [`default/${name}`])).toEqual([{ age: 24 }]);
  const records = "SELECT cluster_uid, former_cluster_uids FROM kindstack_ownership.records WHERE key = $1";
  expect(await database.query(records, [`default/${name}`])).toEqual([
    { cluster_uid: (await get(namespace("kube-system"))).metadata.uid, former_cluster_uids: ["former"] },
  ]);
});

describe("a stop while updates run", () => {
  it("lets them end and says so in the status", async () => {
    const pair = new Pair("stopped");
    await operator.untilUpdating(2, () => pair.apply());
    await operator.stop();

    await pair.expectMade(); // with no operator there
    await operator.start();
    await pair.expectWhole();
    await eventually(async () => {
      expect(await operator.metric("controller_runtime_reconcile_total")).toBeGreaterThanOrEqual(2);
    });
    expect(await operator.metric("kindstack_updates_total")).toBe(0);
  });

  it("interrupts them when there is no time, and the next start continues with them", async () => {
    await operator.restart({ args: ["--grace-period", "0"] });
    const pair = new Pair("interrupted");
    await operator.untilUpdating(2, () => pair.apply());
    await operator.stop();
    expect(operator.locks()).toEqual([]);

    await operator.start();
    await pair.expectWhole();
  });
});
