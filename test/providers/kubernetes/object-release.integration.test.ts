import { describe, expect, it, vi } from "vitest";
import { KubernetesClient, known, type LiveObject, type Manifest } from "../../../providers/kubernetes/client";
import { provider } from "../../../providers/kubernetes/object";
import type { ObjectOutputs } from "../../../providers/kubernetes/object-inputs";
import { CREATED_ANNOTATION, OWNER_ANNOTATION, OWNER_UID_LABEL } from "../../../providers/kubernetes/ownership";
import { removeUntrackedObject } from "../../../providers/kubernetes/remove-object";
import { acme, globex } from "../../objects";
import { terminal } from "../failures";
import { create, release, remove } from "./objects";
import { CONFIG_MAP, HELD, NAMESPACE, POD, TestCluster } from "./test-cluster";

const cluster = TestCluster.use();

const LIMIT_RANGE = { apiVersion: "v1", kind: "LimitRange" };
const OWNERSHIP = [OWNER_UID_LABEL, OWNER_ANNOTATION, CREATED_ANNOTATION];
const ownershipOf = (object: LiveObject | undefined) =>
  Object.keys({ ...object?.metadata.labels, ...object?.metadata.annotations }).filter((name) =>
    OWNERSHIP.includes(name),
  );

describe("release", () => {
  it("leaves the object as it is, as unmanaged, and out of reach of the garbage collector", async () => {
    const holder = await cluster.applyAs("someone", cluster.configMap("holder"));
    const ownerReferences = [{ apiVersion: "v1", kind: "ConfigMap", name: "holder", uid: holder.metadata.uid }];
    const metadata = { labels: { team: "acme" }, annotations: { note: "1" } };
    const outs = await create(cluster.configMap("released", { a: "1" }, { ...metadata, ownerReferences }));
    expect((await cluster.find("released"))?.metadata.ownerReferences).toHaveLength(1);

    await release(outs);
    const live = await cluster.find("released");
    expect(live).toMatchObject({ data: { a: "1" }, metadata: { uid: outs.uid, ...metadata } });
    expect(ownershipOf(live)).toEqual([]);
    expect(live?.metadata.ownerReferences).toBeUndefined();
  });

  it("leaves what others set, in what was adopted too", async () => {
    await cluster.applyAs("someone", cluster.configMap("adopted", { theirs: "1" }, { labels: { theirs: "1" } }));
    await release(await create(cluster.configMap("adopted", { ours: "1" })));
    const live = await cluster.find("adopted");
    expect(live).toMatchObject({ data: { theirs: "1", ours: "1" }, metadata: { labels: { theirs: "1" } } });
    expect(ownershipOf(live)).toEqual([]);
  });

  it("has nothing to do when the object is gone, or another owner's by now", async () => {
    const gone = await create(cluster.configMap("gone"));
    await cluster.client.delete(CONFIG_MAP, "gone", cluster.namespace);
    await release(gone);
    expect(await cluster.find("gone")).toBeUndefined();

    const taken = await create(cluster.configMap("taken"));
    await provider.update("id", taken, { manifest: taken.manifest, owner: globex });
    await release(taken);
    expect((await cluster.find("taken"))?.metadata.labels).toEqual({ [OWNER_UID_LABEL]: globex.uid });
  });
});

describe("an object that is not to be adopted", () => {
  it("is refused when it exists and is unmanaged, and stays as it is", async () => {
    await cluster.applyAs("someone", cluster.configMap("foreign", { theirs: "1" }));
    const creating = create(cluster.configMap("foreign", { ours: "1" }), { adopt: false });
    await expect(creating).rejects.toEqual(
      terminal("Conflict", /^ConfigMap foreign exists already and is not adopted$/),
    );
    const live = await cluster.find("foreign");
    expect(live?.data).toEqual({ theirs: "1" });
    expect(ownershipOf(live)).toEqual([]);
  });

  it("is made where there is none, and made again after a crash is still one that was created", async () => {
    const first = await create(cluster.configMap("own", { a: "1" }), { adopt: false });
    const second = await create(cluster.configMap("own", { a: "1" }), { adopt: false });
    expect(second).toEqual(first);
    expect(second.created).toBe(true);
  });
});

describe("an object whose deletion is not awaited", () => {
  it("is on its way out when delete returns", async () => {
    await remove(await create(cluster.configMap("leaving", {}, HELD), { awaitDeletion: false }));
    expect((await cluster.find("leaving"))?.metadata.deletionTimestamp).toEqual(expect.any(String));
    await cluster.removeFinalizers("leaving");
  });

  it("is awaited where nothing else is said", async () => {
    const outs = await create(cluster.configMap("awaited", {}, HELD));
    const removed = vi.fn();
    const removing = remove(outs).then(removed);
    await expect.poll(async () => (await cluster.find("awaited"))?.metadata.deletionTimestamp).toBeDefined();
    expect(removed).not.toHaveBeenCalled();
    await cluster.removeFinalizers("awaited");
    await removing;
    expect(await cluster.find("awaited")).toBeUndefined();
  });
});

it("a Deployment that is deleted is gone when its Pods are", async () => {
  const outs = await create(cluster.deployment("parent", 2));
  const pods = async () =>
    (await cluster.client.list(POD, { namespace: cluster.namespace, labelSelector: "app=parent" })).items;
  await expect.poll(async () => (await pods()).length).toBe(2);
  await remove(outs);
  expect(await pods()).toEqual([]);
  expect(await cluster.client.find(outs.manifest as LiveObject)).toEqual({ outcome: "absent" });
});

it.each<[string, (outs: ObjectOutputs, live: LiveObject) => Promise<unknown>]>([
  ["a deletion", (outs) => remove(outs)],
  ["a removal of what no state knows", (_, live) => removeUntrackedObject(cluster.client, live, { release: false })],
])("a namespace that was protected after it was made stays, unmanaged, after %s", async (gesture, take) => {
  const name = `${cluster.namespace}-${gesture.length}`;
  const manifest: Manifest = { apiVersion: "v1", kind: "Namespace", metadata: { name } };
  const outs = await create(manifest);
  const find = () => known(cluster.client.get(NAMESPACE, name));
  vi.stubEnv("KINDSTACK_PROTECTED_NAMESPACES", `${cluster.namespace}-*`);
  await take(outs, (await find()) as LiveObject);
  vi.unstubAllEnvs();
  const live = await find();
  await cluster.client.delete(NAMESPACE, name);
  expect(live?.metadata.deletionTimestamp).toBeUndefined();
  expect(ownershipOf(live)).toEqual([]);
});

describe("what no state knows", () => {
  const found = async (name: string) => (await cluster.find(name)) as LiveObject;

  it("is deleted when Kindstack made it", async () => {
    await create(cluster.configMap("orphan", { a: "1" }));
    await removeUntrackedObject(cluster.client, await found("orphan"), { release: false });
    expect(await cluster.find("orphan")).toBeUndefined();
  });

  it("is only released when it existed before", async () => {
    await cluster.applyAs("someone", cluster.configMap("adopted-orphan", { theirs: "1" }));
    await create(cluster.configMap("adopted-orphan", { ours: "1" }));
    await removeUntrackedObject(cluster.client, await found("adopted-orphan"), { release: false });
    const live = await found("adopted-orphan");
    expect(live).toMatchObject({ data: { theirs: "1" } });
    expect(ownershipOf(live)).toEqual([]);
  });

  it("limits its namespace until that is gone", async () => {
    const namespace = `${cluster.namespace}-ending`;
    await cluster.client.create({ apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } });
    const metadata = { namespace, ...HELD }; // the end of the namespace waits for it
    const limits = cluster.manifest(LIMIT_RANGE, "limits", { spec: { limits: [] } }, metadata);
    await create(limits);
    const seen = (await known(cluster.client.find(limits))) as LiveObject;
    const remove = vi.spyOn(KubernetesClient.prototype, "delete");
    await cluster.client.delete(NAMESPACE, namespace);
    remove.mockClear();

    await removeUntrackedObject(cluster.client, seen, { release: false });

    expect(remove).not.toHaveBeenCalled();
    remove.mockRestore();
    await cluster.client.mergePatch(limits, "limits", namespace, { metadata: { finalizers: null } });
  });

  it("is left alone by who has seen it before it became another owner's, or unmanaged", async () => {
    const outs = await create(cluster.configMap("former-orphan", { a: "1" }));
    const seen = await found("former-orphan");
    await release(outs);
    await removeUntrackedObject(cluster.client, seen, { release: false });
    expect(await cluster.find("former-orphan")).toMatchObject({ data: { a: "1" } });
  });

  it("is released as it is where what was made is to be left", async () => {
    const { uid } = (await cluster.applyAs("someone", cluster.configMap("its-owner"))).metadata;
    const ownerReferences = [{ apiVersion: "v1", kind: "ConfigMap", name: "its-owner", uid }];
    await create(cluster.configMap("released-orphan", { a: "1" }, { ownerReferences }), { owner: { ...acme, uid } });
    await removeUntrackedObject(cluster.client, await found("released-orphan"), { release: true });
    const live = await found("released-orphan");
    expect(live).toMatchObject({ data: { a: "1" } });
    expect(ownershipOf(live)).toEqual([]);
    expect(live.metadata.ownerReferences).toBeUndefined();
  });
});
