import { beforeAll, describe, expect, it } from "vitest";
import type { Manifest } from "../../providers/kubernetes/client";
import { OWNER_UID_LABEL } from "../../providers/kubernetes/ownership";
import { eventually } from "../../src/testing/eventually";
import { untilReady } from "../e2e/conditions";
import { NAMESPACE, namespace, postgresWriter, tenant, uniqueName } from "../e2e/manifests";
import { apply, client, create, edit, find, get, remove } from "../e2e/objects";
import { useFaultOperator } from "./fault-operator";
import { OldView } from "./old-view";

const faulty = useFaultOperator({ args: ["--concurrency", "8"] });

describe("an operator that starts with the view of an API server that is behind", () => {
  let tables: [string, string];
  beforeAll(async () => {
    tables = [await faulty.createTable(), await faulty.createTable()];
  });

  it("deletes nothing that exists rightfully, and all is right once the view is fresh", async () => {
    const { operator, database, api } = faulty;
    const name = uniqueName("stale");
    const grown = tenant(`${name}-grown`, { namespaces: [`${name}-a`] });
    const moved = postgresWriter(`${name}-moved`, { table: tables[0] });
    const successors = [tenant(`${name}-successor`), postgresWriter(`${name}-successor`, { table: tables[0] })];
    const added = tenant(`${name}-added`);
    const all = [grown, moved, ...successors, added];

    /** What there is, and whose it is. */
    const snapshot = async () => {
      const namespaces = (await client.list(NAMESPACE, { labelSelector: OWNER_UID_LABEL })).items
        .filter(({ metadata }) => metadata.name.startsWith(name))
        .map(({ metadata: { name, uid, labels, deletionTimestamp } }) => ({ name, uid, labels, deletionTimestamp }));
      const rows = await Promise.all(tables.map((table) => database.query(`SELECT * FROM ${table} ORDER BY id`)));
      const owners = await database.query("SELECT * FROM kindstack_ownership.records ORDER BY table_id, key");
      return { namespaces, rows, owners };
    };

    const view = new OldView(faulty);
    await view.learn();
    await Promise.all([grown, moved, ...successors].map(apply));
    await Promise.all([grown, moved, ...successors].map(untilReady));

    // As it is to be shown later: two objects that an update was asked for, and two that are being deleted.
    await operator.stop();
    for (const object of [grown, moved]) {
      await edit(object, { metadata: { annotations: { "kindstack.dev/reconcile": "now" } } });
    }
    await Promise.all(successors.map(remove));
    await view.record();

    for (const object of successors) {
      await edit(object, { metadata: { finalizers: null } });
      await create(object);
    }
    await edit(grown, { spec: { namespaces: [`${name}-a`, `${name}-b`] } });
    await edit(moved, { spec: { table: tables[1] } });
    await apply(added);
    await faulty.start();
    await Promise.all(all.map(untilReady));
    const before = await snapshot();
    expect(before.namespaces.map((found) => found.name)).toEqual(
      ["a", "added", "b", "successor"].map((last) => `${name}-${last}`),
    );
    expect(before.rows.map((rows) => rows.length)).toEqual([1, 1]);
    const successor = await get(successors[1] as Manifest);
    expect(before.owners).toContainEqual(expect.objectContaining({ owner: successor.metadata.uid }));

    const looked = new Map<string, number>();
    api.faults.answered = ({ method, url }) => {
      if (method === "GET") looked.set(url.pathname, (looked.get(url.pathname) ?? 0) + 1);
      return true;
    };
    await operator.stop();
    view.show();
    await faulty.start();
    await eventually(() => {
      for (const { kind, metadata } of [grown, moved]) {
        const reads = [...looked].filter(([path]) => path.endsWith(`/${metadata.name}`));
        expect(reads[0]?.[1], `${kind} ${metadata.name}`).toBeGreaterThan(1);
      }
    });
    await eventually(() => expect(operator.locks()).toEqual([]));
    expect(await snapshot()).toEqual(before);

    api.faults = {};
    api.cut();
    await edit(grown, { spec: { namespaces: [`${name}-a`, `${name}-b`, `${name}-c`] } });
    await Promise.all(all.map(untilReady));
    const after = await snapshot();
    expect(after.namespaces).toEqual(expect.arrayContaining(before.namespaces));
    expect(after).toMatchObject({ rows: before.rows, owners: before.owners });
    expect(await find(namespace(`${name}-c`))).toHaveProperty("metadata.uid");
  });
});
