import { beforeAll, describe, expect, it } from "vitest";
import type { LiveObject, Manifest } from "../../providers/kubernetes/client";
import { OWNER_UID_LABEL } from "../../providers/kubernetes/ownership";
import { eventually } from "../../src/testing/eventually";
import { findCondition } from "../../stacks/contract/condition";
import { statusOf } from "../../stacks/contract/kind";
import {
  apply,
  capsuleTenant,
  client,
  create,
  edit,
  find,
  get,
  LIMIT_RANGE,
  NAMESPACE,
  namespace,
  POD,
  podSet,
  postgresWriter,
  RESOURCE_QUOTA,
  ROLE_BINDING,
  remove,
  tenant,
  uniqueName,
  untilReady,
  untilSynced,
} from "../e2e/objects";
import type { List } from "./api-proxy";
import { useFaultOperator } from "./fault-operator";

/** A tenant's owner has the roles `admin` and `capsule-namespace-deleter` in each namespace. */
const OWNER_BINDINGS = 2;

const faulty = useFaultOperator({ args: ["--concurrency", "8"] });

/** What the operator's lists were at some time, to be shown to it later, when nothing else is. */
class OldView {
  readonly #lists = new Map<string, List | undefined>();

  /** Starts the operator again and learns what its caches list. What it asks for later, it has to see as it is. */
  async learn(): Promise<void> {
    await faulty.operator.stop();
    faulty.api.faults.list = (list, { url }) => {
      this.#lists.set(url.pathname + url.search, undefined);
      return list;
    };
    await faulty.start();
    faulty.api.faults = {};
  }

  async record(): Promise<void> {
    for (const path of this.#lists.keys()) {
      this.#lists.set(path, (await (await fetch(faulty.api.url + path)).json()) as List);
    }
  }

  /** @param isOld whether it is behind in this collection, such as `/api/v1/pods`; in all, if not given */
  show(isOld = (_collection: string) => true): void {
    faulty.api.faults.list = (list, { url }) =>
      (isOld(url.pathname) ? this.#lists.get(url.pathname + url.search) : undefined) ?? list;
    faulty.api.faults.silent = ({ url }) => isOld(url.pathname);
  }
}

describe("an operator that starts with the view of an API server that is behind", () => {
  let tables: [string, string];
  beforeAll(async () => {
    tables = [await faulty.createTable(), await faulty.createTable()];
  });

  it("deletes nothing that exists rightfully, and all is right once the view is fresh", {
    timeout: 240_000,
  }, async () => {
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

    const view = new OldView();
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
    expect(await find({ kind: "Namespace", metadata: { name: `${name}-c` } })).toHaveProperty("metadata.uid");
  });
});

describe("an operator to which its objects are shown as they are, and what they go by as it was", () => {
  const TENANT_LABEL = "capsule.clastix.io/tenant";
  const quota = { resourceQuotas: [{ hard: { pods: "10" } }] };

  it("deletes nothing, takes nothing and makes nothing twice, whatever is asked for meanwhile", {
    timeout: 240_000,
  }, async () => {
    const { operator } = faulty;
    const name = uniqueName("behind");
    const [oil, gas] = [capsuleTenant(`${name}-oil`, quota), capsuleTenant(`${name}-gas`, quota)];
    const [grown, mended] = [podSet(`${name}-grown`, 2), podSet(`${name}-mended`, 2)];
    const all = [oil, gas, grown, mended];
    const ofTenant = (part: string, owner: Manifest) =>
      namespace(`${name}-${part}`, { labels: { [TENANT_LABEL]: owner.metadata.name as string } });

    const isTested = ({ metadata }: LiveObject) =>
      metadata.name.startsWith(name) || metadata.namespace?.startsWith(name) === true;
    /** What there is, and whose it is. */
    const snapshot = async () => {
      const lists = await Promise.all(
        [NAMESPACE, POD, LIMIT_RANGE, RESOURCE_QUOTA, ROLE_BINDING].map((type) => client.list(type)),
      );
      return lists
        .flatMap(({ items }) => items)
        .filter(isTested)
        .map(({ kind, metadata: { name, namespace, uid, labels, ownerReferences, deletionTimestamp } }) => {
          const owners = ownerReferences?.map((owner) => owner.name).join();
          const tenant = labels?.[TENANT_LABEL];
          return { what: `${kind} ${namespace ?? ""}/${name}`, uid, owners, tenant, deletionTimestamp };
        })
        .sort((a, b) => (a.what < b.what ? -1 : 1));
    };
    const namespacesIn = async (tenant: Manifest) =>
      ((await get(tenant)).status as { namespaces?: string[] }).namespaces?.map((full) => full.slice(name.length + 1));
    /** Ready comes before the rights of the owner, which come when the policies of each namespace are enforced. */
    const untilAtRest = (tenant: Manifest, parts: readonly string[]) =>
      eventually(async () => {
        const { conditions } = statusOf(await get(tenant));
        expect(findCondition(conditions, "Enforced")?.status).toBe("True");
        expect(findCondition(conditions, "Reconciling")).toBeUndefined();
        for (const part of parts) {
          const { items } = await client.list(ROLE_BINDING, { namespace: `${name}-${part}` });
          expect(items.length, part).toBe(OWNER_BINDINGS);
        }
      });
    const podsOf = async ({ metadata }: Manifest) => {
      const { items } = await client.list(POD, { labelSelector: `app=${metadata.name}` });
      return items.filter((pod) => !pod.metadata.deletionTimestamp).map((pod) => pod.metadata.name);
    };

    const view = new OldView();
    await view.learn();
    await Promise.all(all.map(apply));
    for (const part of ["kept", "moved", "released"]) await create(ofTenant(part, oil));
    await eventually(async () => expect(await namespacesIn(oil)).toEqual(["kept", "moved", "released"]));
    await Promise.all(all.map(untilReady));
    await view.record();

    // What is not in that view: a namespace that came, one that another tenant has, one that no one has; Pods that came
    // with a new spec, and one in the place of another.
    await create(ofTenant("new", oil));
    await untilAtRest(oil, ["kept", "moved", "released", "new"]);
    for (const [part, tenant] of [
      ["moved", gas.metadata.name],
      ["released", null],
    ] as const) {
      const metadata = { labels: { [TENANT_LABEL]: tenant }, ownerReferences: null };
      await edit(namespace(`${name}-${part}`), { metadata });
    }
    await edit(grown, { spec: { replicas: 4 } });
    const [removed = ""] = await podsOf(mended);
    await remove({ kind: "Pod", metadata: { name: removed, namespace: "default" } });
    await eventually(async () => {
      expect(await namespacesIn(oil)).toEqual(["kept", "new"]);
      expect(await namespacesIn(gas)).toEqual(["moved"]);
      expect(await podsOf(grown)).toHaveLength(4);
      expect(await podsOf(mended)).toHaveLength(2);
      expect(await find({ kind: "Pod", metadata: { name: removed, namespace: "default" } })).toBeUndefined();
    });
    await Promise.all(all.map(untilReady));
    await untilAtRest(oil, ["kept", "new"]);
    await untilAtRest(gas, ["moved"]);
    await operator.stop();
    const before = await snapshot();

    view.show((collection) => ["/api/v1/namespaces", "/api/v1/pods"].includes(collection));
    await faulty.start();
    await edit(oil, { spec: { limitRanges: [{ limits: [{ type: "Pod", max: { cpu: "2" } }] }] } });
    await edit(grown, { spec: { replicas: 5 } });
    const annotations = { "kindstack.dev/reconcile": "now" };
    for (const object of [gas, mended]) await edit(object, { metadata: { annotations } });
    await Promise.all(all.map(untilSynced)); // what is new is not shown, so that none of it can be seen to work
    await eventually(async () => {
      for (const object of [gas, mended]) {
        expect((await get(object)).status).toMatchObject({ lastHandledReconcile: "now" });
      }
      expect(operator.locks()).toEqual([]);
    });

    const during = await snapshot();
    const added = during.filter(({ uid }) => !before.some((known) => known.uid === uid)).map(({ what }) => what);
    expect(during).toEqual(expect.arrayContaining(before));
    expect(added).toEqual([
      `LimitRange ${name}-kept/capsule-${name}-oil-0`,
      `LimitRange ${name}-new/capsule-${name}-oil-0`,
      expect.stringContaining(`Pod default/${name}-grown-pod-`),
    ]);

    faulty.api.faults = {};
    faulty.api.cut();
    await edit(grown, { spec: { replicas: 6 } });
    await create(ofTenant("last", gas));
    await eventually(async () => expect(await namespacesIn(gas)).toEqual(["last", "moved"]));
    await Promise.all(all.map(untilReady));
    expect(await snapshot()).toEqual(expect.arrayContaining(during));
    expect(await podsOf(grown)).toHaveLength(6);
    await remove(namespace(`${name}-released`));
  });
});
