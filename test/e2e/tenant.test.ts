import { describe, expect, it } from "vitest";
import type { LiveObject, Manifest } from "../../providers/kubernetes/client";
import { OWNER_UID_LABEL } from "../../providers/kubernetes/ownership";
import type { HistoryEntry } from "../../src/automation/engine";
import { eventually } from "../../src/testing/eventually";
import { statusOf } from "../../stacks/contract/kind";
import { FINALIZER } from "../../stacks/contract/object";
import { applyUntilReady, removeUntilGone, untilCondition, untilReady } from "./conditions";
import { kubectl, noKubectl } from "./kubectl";
import { namespace, ROLE_BINDING, sampleFile, tenant, uniqueName } from "./manifests";
import { apply, client, create, edit, eventsAbout, find, get, remove, requestUpdate } from "./objects";
import { kindstack, useOperator } from "./operator";

const operator = useOperator({ args: ["--concurrency", "8"] });

/** Who may do what in a namespace: `{ "<binding>": ["<ClusterRole>", "<group>", …] }`. */
async function bindingsOf(name: string): Promise<Record<string, string[]>> {
  const { items } = await client.list(ROLE_BINDING, { namespace: name });
  return Object.fromEntries(
    items.map((binding) => {
      const { roleRef, subjects = [] } = binding as LiveObject & { roleRef: { name: string }; subjects?: Subject[] };
      return [binding.metadata.name, [roleRef.name, ...subjects.map(({ name }) => name)]];
    }),
  );
}
interface Subject {
  apiGroup: string;
  kind: string;
  name: string;
}

const roleBinding = (namespace: string, role: "admin" | "edit"): Manifest => ({
  apiVersion: ROLE_BINDING.apiVersion,
  kind: ROLE_BINDING.kind,
  metadata: { name: `${namespace}-${role}-rb`, namespace },
});
const annotationsOf = async (name: string) => (await get(namespace(name))).metadata.annotations;
const isGone = (object: LiveObject | undefined) =>
  object === undefined || object.metadata.deletionTimestamp !== undefined;

describe("the sample Tenant", () => {
  const { file, manifest } = sampleFile("tenant");
  const names = ["tenant-sample-ns1", "tenant-sample-ns2", "tenant-sample-ns3"];

  it("makes its namespaces and bindings and reports them", async () => {
    const ready = await applyUntilReady(manifest);

    for (const name of names) {
      expect(await annotationsOf(name)).toMatchObject({
        adminEmail: "admin@yourdomain.com",
        "managed-by": "tenant-operator",
      });
      expect(await bindingsOf(name)).toEqual({
        [`${name}-admin-rb`]: ["admin", "admin-group1", "admin-group2"],
        [`${name}-edit-rb`]: ["edit", "user-group1", "user-group2"],
      });
    }
    expect(ready.metadata.finalizers).toEqual([FINALIZER]);
    expect(ready.status).toMatchObject({ adminEmail: "admin@yourdomain.com", observedGeneration: 1 });
    expect(statusOf(ready).conditions).toMatchObject([
      { type: "Ready", status: "True", reason: "Succeeded", observedGeneration: 1 },
      { type: "Synced", status: "True", reason: "Succeeded", observedGeneration: 1 },
    ]);
    await eventually(async () => {
      expect((await get(manifest)).status).toMatchObject({ namespaceCount: 3 });
    });
    expect((await get(manifest)).status).not.toHaveProperty("adoptedNamespaces");
  });

  it("has an Event that says what was made", async () => {
    const object = await get(manifest);
    await eventually(async () => {
      expect(await eventsAbout(object)).toMatchObject([
        { type: "Normal", reason: "Updated", note: "9 created", reportingController: "kindstack.dev/operator" },
      ]);
    });
  });

  it("is what kubectl shows and waits for", async ({ skip }) => {
    skip(noKubectl !== undefined, noKubectl);
    const applied = await kubectl(["apply", "-f", file]);
    expect(applied.stderr).not.toMatch(/error/i);
    const waited = await kubectl([
      "wait",
      "--for=condition=Ready",
      "tenant.multitenancy/tenant-sample",
      "--timeout=20s",
    ]);
    expect(waited.stdout).toContain("condition met");

    const { stdout } = await kubectl(["get", "tenants.multitenancy"]);
    const [, row = ""] = stdout.split("\n");
    expect(row.split(/\s+/).slice(0, 4)).toEqual(["tenant-sample", "admin@yourdomain.com", "3", "True"]);
    expect((await kubectl(["describe", "tenant.multitenancy", "tenant-sample"])).stdout).toContain("9 created");
  });

  it("takes everything with it when it is deleted, its state included, and only then goes", async () => {
    expect(operator.stateFiles("tenant.tenant-sample")).not.toEqual([]);
    await remove(manifest);
    const seen: boolean[][] = [];
    await eventually(async () => {
      const object = await find(manifest);
      const left = await Promise.all(names.map(async (name) => (await find(namespace(name))) !== undefined));
      seen.push([object !== undefined, left.includes(true)]);
      expect(object).toBeUndefined();
    });
    // At no time was the Tenant gone and a namespace there.
    expect(seen).not.toContainEqual([false, true]);
    await eventually(() => expect(operator.stateFiles("tenant.tenant-sample")).toEqual([]));
  });
});

describe.concurrent("a Tenant", () => {
  it("that is changed, loses the namespace that is taken off its list and gets the one that is put on it", async () => {
    const name = uniqueName("list");
    const [kept, dropped, added] = [`${name}-kept`, `${name}-dropped`, `${name}-added`];
    await applyUntilReady(tenant(name, { namespaces: [kept, dropped] }));
    const { uid } = (await get(namespace(kept))).metadata;

    await applyUntilReady(tenant(name, { namespaces: [kept, added] }));

    expect(await find(namespace(dropped))).toBeUndefined();
    expect(Object.keys(await bindingsOf(added))).toEqual([`${added}-admin-rb`, `${added}-edit-rb`]);
    expect((await get(namespace(kept))).metadata.uid).toBe(uid);
    const events = await eventually(async () => {
      const updated = (await eventsAbout(await get(tenant(name)))).filter(({ reason }) => reason === "Updated");
      expect(updated.map(({ note }) => note).join("\n")).toContain(`Namespace namespace/${dropped}`);
      return updated.map(({ note }) => note);
    });
    for (const role of ["admin", "edit"]) {
      expect(events.join("\n")).toContain(`RoleBinding rolebinding/${dropped}/${role}`);
    }
    const words = ["history", "tenant.multitenancy", name, "-o", "json"];
    const history = kindstack(words, { PULUMI_BACKEND_URL: `file://${operator.stateDirectory}` });
    const updates = JSON.parse(history) as HistoryEntry[];
    expect(updates.map(({ result }) => result)).not.toContain("failed");
    const deleted = updates.flatMap(({ changes = [] }) => changes).filter(({ operation }) => operation === "delete");
    expect(deleted.map(({ type, name }) => `${type} ${name}`).sort()).toEqual([
      `Namespace namespace/${dropped}`,
      `RoleBinding rolebinding/${dropped}/admin`,
      `RoleBinding rolebinding/${dropped}/edit`,
    ]);
    await eventually(async () => expect((await get(tenant(name))).status).toMatchObject({ namespaceCount: 2 }));
  });

  it("adopts a namespace that existed before, which outlives it; it takes away only what it brought", async () => {
    const name = uniqueName("adopt");
    const before = await apply(namespace(name, { labels: { team: "blue" }, annotations: { note: "ours" } }));

    const ready = await applyUntilReady(tenant(name));
    expect(await annotationsOf(name)).toMatchObject({ adminEmail: "admin@example.com", note: "ours" });
    expect(Object.keys(await bindingsOf(name))).toHaveLength(2);
    await eventually(async () => {
      expect((await get(ready)).status).toMatchObject({ namespaceCount: 1, adoptedNamespaces: [name] });
    });

    await removeUntilGone(tenant(name));
    const after = await get(namespace(name));
    expect(after.metadata.uid).toBe(before.metadata.uid);
    expect(isGone(after)).toBe(false);
    expect(after.metadata.labels).toEqual({ team: "blue", "kubernetes.io/metadata.name": name });
    expect(after.metadata.annotations).toEqual({ note: "ours" });
    expect(await bindingsOf(name)).toEqual({});
    await remove(namespace(name));
  });
});

describe.concurrent("a group that is dismissed loses its rights", () => {
  const groupsIn = async (name: string) => (await bindingsOf(name))[`${name}-admin-rb`]?.slice(1) ?? [];
  const untilDismissed = (names: string[]) =>
    eventually(async () => {
      for (const name of names) expect(await groupsIn(name)).not.toContain("goes");
    });
  const made = async (manifest: Manifest) => {
    await applyUntilReady(manifest);
  };
  const group = { apiGroup: "rbac.authorization.k8s.io", kind: "Group", name: "goes" };
  const otherRole = { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "view" };

  it("in all namespaces, also where a user swapped a role, and that one is made again", async () => {
    const name = uniqueName("swapped");
    const names = Array.from({ length: 8 }, (_, index) => `${name}-${index}`);
    await made(tenant(name, { namespaces: names, adminGroups: ["stays", "goes"] }));
    const [swapped = ""] = names;
    const { labels, annotations } = (await get(roleBinding(swapped, "admin"))).metadata;
    await remove(roleBinding(swapped, "admin"));
    const metadata = { name: `${swapped}-admin-rb`, namespace: swapped, labels, annotations } as Manifest["metadata"];
    await create({ ...roleBinding(swapped, "admin"), metadata, roleRef: otherRole, subjects: [group] });

    await apply(tenant(name, { namespaces: names, adminGroups: ["stays"] }));
    await untilDismissed(names);
    await untilReady(tenant(name));
    expect((await get(roleBinding(swapped, "admin"))).roleRef).toMatchObject({ name: "admin" });
  });

  it("in a namespace that is ending and that a finalizer keeps, and where the binding has a finalizer", async () => {
    const name = uniqueName("ending");
    const [ending, kept] = [`${name}-ending`, `${name}-kept`];
    const held = { name: "held", namespace: ending, finalizers: ["example.com/held"] };
    await made(tenant(name, { namespaces: [ending, kept], adminGroups: ["goes"] }));
    await apply({ apiVersion: "v1", kind: "ConfigMap", metadata: held });
    for (const place of [ending, kept]) {
      await edit(roleBinding(place, "admin"), { metadata: { finalizers: ["example.com/held"] } });
    }
    await remove(namespace(ending));

    await apply(tenant(name, { namespaces: [ending, kept], adminGroups: [] }));
    await untilDismissed([ending, kept]);
    for (const place of [ending, kept]) {
      await edit(roleBinding(place, "admin"), { metadata: { finalizers: null } });
    }
    await edit({ apiVersion: "v1", kind: "ConfigMap", metadata: held }, { metadata: { finalizers: null } });
    await untilReady(tenant(name));
  });

  it("in a namespace whose end an update waits for already", async () => {
    const name = uniqueName("awaited");
    const place = `${name}-ending`;
    await made(tenant(name, { namespaces: [place], adminGroups: ["goes"] }));
    await edit(roleBinding(place, "admin"), { metadata: { finalizers: ["example.com/held"] } });
    await remove(namespace(place));
    await untilCondition(tenant(name), "Synced", "False", "Terminating");
    await eventually(async () => {
      expect((await get(roleBinding(place, "admin"))).metadata.deletionTimestamp).toBeDefined();
    });
    await requestUpdate(tenant(name), "again");
    await eventually(async () => expect(statusOf(await get(tenant(name))).lastHandledReconcile).toBe("again"));

    await apply(tenant(name, { namespaces: [place], adminGroups: [] }));
    await untilDismissed([place]);
    await edit(roleBinding(place, "admin"), { metadata: { finalizers: null } });
    await untilReady(tenant(name));
  });

  it("in a namespace that is given up while another one cannot be updated", async () => {
    const name = uniqueName("given-up");
    const [broken, left] = [`${name}-broken`, `${name}-left`];
    await apply(namespace(left));
    await made(tenant(name, { namespaces: [broken, left], adminGroups: ["goes"] }));
    // A name that no apply can take: another owner's owner label.
    await edit(namespace(broken), { metadata: { labels: { [OWNER_UID_LABEL]: "somebody-else" } } });
    await untilCondition(tenant(name), "Stalled", "True", "Conflict");

    await apply(tenant(name, { namespaces: [broken], adminGroups: ["stays"] }));
    await untilDismissed([broken, left]);
    await eventually(async () => expect(await bindingsOf(left)).toEqual({})); // the other binding goes beside it
    await edit(namespace(broken), { metadata: { labels: { [OWNER_UID_LABEL]: null } } });
    await untilReady(tenant(name));
    await remove(namespace(left));
  });
});
