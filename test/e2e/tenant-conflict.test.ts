import { describe, expect, it } from "vitest";
import type { LiveObject } from "../../providers/kubernetes/client";
import { CREATED_ANNOTATION, OWNER_UID_LABEL } from "../../providers/kubernetes/ownership";
import { eventually } from "../../src/testing/eventually";
import { findCondition } from "../../stacks/contract/condition";
import { statusOf } from "../../stacks/contract/kind";
import { applyUntilReady, conditionOf, conditionTypes, untilCondition, untilReady } from "./conditions";
import { namespace, objectOf, ROLE_BINDING, tenant, uniqueName } from "./manifests";
import { apply, edit, eventsAbout, find, get, remove } from "./objects";
import { useOperator } from "./operator";

const operator = useOperator({ args: ["--concurrency", "8"] });

const isReady = (object: LiveObject) => findCondition(statusOf(object).conditions, "Ready")?.status === "True";
const ownerOf = async (name: string) => (await get(namespace(name))).metadata.labels?.[OWNER_UID_LABEL];
const untilConflict = (name: string) => untilCondition(tenant(name), "Stalled", "True", "Conflict");

/** Waits until all but one say that the one has it, and returns that one first. */
async function untilSettled(names: string[], claimed: string): Promise<LiveObject[]> {
  return eventually(async () => {
    const objects = await Promise.all(names.map((name) => get(tenant(name))));
    const [winner, ...others] = objects.sort((a, b) => Number(isReady(b)) - Number(isReady(a)));
    expect(winner && isReady(winner)).toBe(true);
    for (const other of others) {
      expect(conditionOf(other, "Stalled")).toMatchObject({ status: "True", reason: "Conflict" });
      expect(conditionOf(other, "Stalled").message).toContain(`Tenant ${winner?.metadata.name}`);
    }
    expect(await ownerOf(claimed)).toBe(winner?.metadata.uid);
    return objects;
  });
}

describe.concurrent("a Tenant that claims another one's namespace", () => {
  it("is told whose it is and takes nothing at all, until the other one is deleted", async () => {
    const [first, second] = [uniqueName("first"), uniqueName("second")];
    const free = `${second}-free`;
    const holder = await apply(tenant(first));
    await untilReady(tenant(first));

    await apply(tenant(second, { adminEmail: "second@example.com", namespaces: [free, first] }));
    const stalled = await untilConflict(second);
    expect(conditionOf(stalled, "Stalled").message).toContain(`${first} belongs to Tenant ${first}`);
    expect(conditionOf(stalled, "Ready")).toMatchObject({ status: "False", reason: "Conflict" });
    expect(conditionTypes(stalled)).not.toContain("Reconciling");
    expect(await find(namespace(free))).toBeUndefined();
    expect(await ownerOf(first)).toBe(holder.metadata.uid);
    expect((await get(namespace(first))).metadata.annotations).toMatchObject({ adminEmail: "admin@example.com" });
    await eventually(async () => {
      expect(await eventsAbout(stalled)).toMatchObject([{ type: "Warning", reason: "Conflict" }]);
    });

    await remove(tenant(first));
    const ready = await untilReady(tenant(second));
    expect(await ownerOf(first)).toBe(ready.metadata.uid);
    expect((await get(namespace(first))).metadata.annotations).toMatchObject({ adminEmail: "second@example.com" });
    await eventually(async () => expect((await get(tenant(second))).status).toMatchObject({ namespaceCount: 2 }));
  });

  it("takes away rights all the same, and what it can have it gets", async () => {
    const [first, second] = [uniqueName("first"), uniqueName("second")];
    const more = `${second}-more`;
    await apply(tenant(first));
    await apply(tenant(second, { adminGroups: ["stays", "goes"] }));
    await untilReady(tenant(first));
    await untilReady(tenant(second));

    await apply(tenant(second, { adminGroups: ["stays"], namespaces: [second, first, more] }));
    const admins = objectOf(ROLE_BINDING, `${second}-admin-rb`, second);
    await eventually(async () => expect((await get(admins)).subjects).toMatchObject([{ name: "stays" }]));
    expect(conditionOf(await untilConflict(second), "Stalled").message).toContain(
      `${first} belongs to Tenant ${first}`,
    );
    expect(await ownerOf(more)).toBe((await get(tenant(second))).metadata.uid);

    await remove(tenant(first));
    await untilReady(tenant(second));
    expect(await ownerOf(first)).toBe((await get(tenant(second))).metadata.uid);
  });

  it("continues when a label in its way is taken off, as its message asks", async () => {
    const [name, other] = [uniqueName("labelled"), uniqueName("nobody")];
    await apply(namespace(name, { labels: { [OWNER_UID_LABEL]: other } }));
    await apply(tenant(name));
    const stalled = await untilConflict(name);
    expect(conditionOf(stalled, "Stalled").message).toContain(
      `remove the label ${OWNER_UID_LABEL} of Namespace ${name}`,
    );

    await edit(namespace(name), { metadata: { labels: { [OWNER_UID_LABEL]: null } } });
    await untilReady(tenant(name));
  });

  it.each(["the other one claims it", "it is released"])(
    "gets it with all that is in it, as the message and the page say, when first %s",
    async (first) => {
      const [from, to] = [uniqueName("from"), uniqueName("to")];
      const claim = () => apply(tenant(to, { namespaces: [to, from] }));
      const release = () => apply(tenant(from, { namespaces: [`${from}-rest`] }));
      await applyUntilReady(tenant(from));
      const { uid } = (await get(namespace(from))).metadata;
      const kept = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "kept", namespace: from } };
      await apply({ ...kept, data: { a: "1" } });
      await edit(namespace(from), { metadata: { annotations: { [CREATED_ANNOTATION]: null } } });
      if (first === "it is released") {
        await release();
        await eventually(async () => expect(await ownerOf(from)).toBeUndefined());
        await claim();
      } else {
        await claim();
        const message = conditionOf(await untilConflict(to), "Stalled").message;
        expect(message).toContain(`first remove its annotation ${CREATED_ANNOTATION}`);
        await release();
      }
      const { metadata } = await untilReady(tenant(to));
      await eventually(async () => expect(await ownerOf(from)).toBe(metadata.uid));
      expect((await get(namespace(from))).metadata).toMatchObject({ uid });
      expect(await get(kept)).toMatchObject({ data: { a: "1" } });
    },
  );

  it("does not disturb the other one by going away", async () => {
    const [first, second] = [uniqueName("first"), uniqueName("second")];
    const holder = await apply(tenant(first));
    await untilReady(tenant(first));
    await apply(tenant(second, { namespaces: [first] }));
    await untilConflict(second);

    await remove(tenant(second));
    await eventually(async () => expect(await find(tenant(second))).toBeUndefined());

    expect(await ownerOf(first)).toBe(holder.metadata.uid);
    expect((await get(namespace(first))).metadata.deletionTimestamp).toBeUndefined();
  });

  it("is one of them when all come at the same time; one has it and the others wait", async () => {
    const claimed = uniqueName("claimed");
    const names = ["a", "b", "c"].map(uniqueName);
    await Promise.all(names.map((name) => apply(tenant(name, { namespaces: [claimed] }))));

    const [winner] = await untilSettled(names, claimed);
    const left = names.filter((name) => name !== winner?.metadata.name);
    await remove(tenant(winner?.metadata.name ?? ""));
    await untilSettled(left, claimed);
  });
});

describe("after a restart, a Tenant that claims another one's namespace", () => {
  it("still waits, and gets it when the other one takes it off its list", async () => {
    const [first, second] = [uniqueName("first"), uniqueName("second")];
    const claimed = uniqueName("claimed");
    await applyUntilReady(tenant(first, { namespaces: [first, claimed] }));
    await apply(tenant(second, { namespaces: [claimed] }));
    await untilConflict(second);

    await operator.restart();
    await eventually(async () => {
      // Once more, as a restart forgets what was in vain; and in vain again.
      expect(await operator.metric("controller_runtime_reconcile_total")).toBeGreaterThan(0);
      expect(operator.log.split("waits for the object to change").length).toBeGreaterThan(2);
    });
    const stalled = await untilConflict(second);
    expect(conditionOf(stalled, "Stalled").message).toContain(`Tenant ${first}`);

    await apply(tenant(first));
    const ready = await untilReady(tenant(second));
    expect(await ownerOf(claimed)).toBe(ready.metadata.uid);
    expect(isReady(await untilReady(tenant(first)))).toBe(true);
  });

  it("gets it or waits, when all were there before the operator", async () => {
    await operator.stop();
    const claimed = uniqueName("claimed");
    const names = ["a", "b", "c"].map(uniqueName);
    await Promise.all(names.map((name) => apply(tenant(name, { namespaces: [claimed] }))));

    await operator.start();
    await untilSettled(names, claimed);
  });
});
