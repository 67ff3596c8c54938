import { describe, expect, it } from "vitest";
import type { LiveObject, Manifest } from "../../providers/kubernetes/client";
import { OWNER_UID_LABEL } from "../../providers/kubernetes/ownership";
import { eventually } from "../../src/testing/eventually";
import { findCondition } from "../../stacks/contract/condition";
import { statusOf } from "../../stacks/contract/kind";
import { untilReady, untilSynced } from "../e2e/conditions";
import {
  capsuleTenant,
  LIMIT_RANGE,
  NAMESPACE,
  namespace,
  objectOf,
  POD,
  podSet,
  RESOURCE_QUOTA,
  ROLE_BINDING,
  uniqueName,
} from "../e2e/manifests";
import { apply, client, create, edit, find, get, remove } from "../e2e/objects";
import { useFaultOperator } from "./fault-operator";
import { OldView } from "./old-view";

/** A tenant's owner has the roles `admin` and `capsule-namespace-deleter` in each namespace. */
const OWNER_BINDINGS = 2;

const faulty = useFaultOperator({ args: ["--concurrency", "8"] });

describe("an operator to which its objects are shown as they are, and what they go by as it was", () => {
  const TENANT_LABEL = "capsule.clastix.io/tenant";
  const quota = { resourceQuotas: [{ hard: { pods: "10" } }] };

  it("deletes nothing, takes nothing and makes nothing twice, whatever is asked for meanwhile", async () => {
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
        .map(({ kind, metadata: { name, namespace, uid, labels, deletionTimestamp } }) => {
          const owners = labels?.[OWNER_UID_LABEL];
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

    const view = new OldView(faulty);
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
      const metadata = { labels: { [TENANT_LABEL]: tenant, [OWNER_UID_LABEL]: null } };
      await edit(namespace(`${name}-${part}`), { metadata });
    }
    await edit(grown, { spec: { replicas: 4 } });
    const [removed = ""] = await podsOf(mended);
    await remove(objectOf(POD, removed, "default"));
    await eventually(async () => {
      expect(await namespacesIn(oil)).toEqual(["kept", "new"]);
      expect(await namespacesIn(gas)).toEqual(["moved"]);
      expect(await podsOf(grown)).toHaveLength(4);
      expect(await podsOf(mended)).toHaveLength(2);
      expect(await find(objectOf(POD, removed, "default"))).toBeUndefined();
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
