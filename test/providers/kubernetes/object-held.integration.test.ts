import { afterEach, describe, expect, it, vi } from "vitest";
import { RetryableError } from "../../../providers/errors";
import { KubernetesClient, known, type Manifest } from "../../../providers/kubernetes/client";
import { OBJECT_STUB } from "../../../providers/kubernetes/object";
import type { ObjectInputs, ObjectOutputs } from "../../../providers/kubernetes/object-inputs";
import { CREATED_ANNOTATION, OWNER_UID_LABEL } from "../../../providers/kubernetes/ownership";
import { acme, globex } from "../../objects";
import { heldCalls, outdated, type Write } from "../held-calls";
import { rightBefore } from "./objects";
import { CONFIG_MAP, CRD, definition, HELD, ROLE_BINDING, TestCluster } from "./test-cluster";

const cluster = TestCluster.use();
afterEach(() => void vi.restoreAllMocks());

const { observe, write } = heldCalls(OBJECT_STUB);
const creation = (manifest: Manifest, inputs: Partial<ObjectInputs> = {}): Write => {
  return { call: "Create", news: { manifest, owner: acme, ...inputs } };
};
const update = (olds: ObjectOutputs, manifest: Manifest, inputs: Partial<ObjectInputs> = {}): Write => {
  return { call: "Update", olds, news: { manifest, owner: acme, ...inputs } };
};
const deletion = (olds: ObjectOutputs): Write => ({ call: "Delete", olds });
const made = async (manifest: Manifest, inputs: Partial<ObjectInputs> = {}) =>
  (await write(undefined, creation(manifest, inputs))) as ObjectOutputs;
const dataOf = async (name: string) => (await cluster.find(name))?.data;

/** A ConfigMap, and an update of its data, with what a preview has observed of that. */
async function changing(
  name: string,
  data: Data = { a: "2" },
  from: Data = { a: "1" },
  inputs?: Partial<ObjectInputs>,
) {
  const outs = await made(cluster.configMap(name, from), inputs);
  const change = update(outs, cluster.configMap(name, data), inputs);
  return { change, observed: await observe(change) };
}
type Data = Record<string, string>;

/** The creation of a ConfigMap, with what a preview has observed of that. */
async function creating(name: string, inputs?: Partial<ObjectInputs>) {
  const create = creation(cluster.configMap(name, { a: "1" }), inputs);
  return { create, observed: await observe(create) };
}

/** A ConfigMap, with what a preview has observed of its deletion. */
async function deleting(name: string) {
  const outs = await made(cluster.configMap(name, { a: "1" }));
  return { outs, observed: await observe(deletion(outs)) };
}

describe("a held update of an object", () => {
  it("writes what is still as it was, whatever else there is", async () => {
    const { change, observed } = await changing("same", { a: "2" }, { a: "1", gone: "1" });
    await cluster.edit("same", { data: { others: "x" }, metadata: { annotations: { seen: "1" } } });
    await write(observed, change);
    expect(await dataOf("same")).toEqual({ a: "2", others: "x" });
  });

  it.each([
    ["a field that it sets", { a: "other" }, /data\.a/],
    ["a field that it removes", { gone: "other" }, /data\.gone/],
    ["a field that it removes and is gone", { gone: null }, /data\.gone/],
  ])("writes nothing where %s has changed", async (what, data, message) => {
    const name = `changed-${what.length}`;
    const { change, observed } = await changing(name, { a: "2" }, { a: "1", gone: "1" });
    await cluster.edit(name, { data });
    const edited = await cluster.find(name);
    await expect(write(observed, change)).rejects.toMatchObject(outdated(message));
    expect(await cluster.find(name)).toEqual(edited);
  });

  it("is not stopped by fields that are left to others", async () => {
    const owner = { ...acme, ignoreFields: ["ConfigMap:data.a"] };
    const { change, observed } = await changing("ignored", { a: "1", b: "2" }, { a: "1", b: "1" }, { owner });
    await cluster.edit("ignored", { data: { a: "other" } });
    await write(observed, change);
    expect(await dataOf("ignored")).toEqual({ a: "other", b: "2" });
  });

  it("is not stopped by a status that moves between its look and its write", async () => {
    const { change, observed } = await changing("moving");
    rightBefore("apply", () => cluster.edit("moving", { metadata: { annotations: { status: "moved" } } }));
    await write(observed, change);
    expect(await dataOf("moving")).toEqual({ a: "2" });
  });

  it("refuses what changes between its look and its write", async () => {
    const { change, observed } = await changing("raced");
    rightBefore("apply", () => cluster.edit("raced", { data: { a: "other" } }));
    await expect(write(observed, change)).rejects.toMatchObject(outdated(/data\.a/));
    expect(await dataOf("raced")).toEqual({ a: "other" });
  });

  it("refuses an object that was made again, and one that is gone", async () => {
    const { change, observed } = await changing("again");
    await cluster.client.delete(CONFIG_MAP, "again", cluster.namespace);
    await expect(write(observed, change)).rejects.toMatchObject(outdated());
    await cluster.client.create(cluster.configMap("again", { a: "1" }));
    await expect(write(observed, change)).rejects.toMatchObject(outdated());
    expect(await dataOf("again")).toEqual({ a: "1" });
  });

  it("is repeated after a crash, until the object is changed", async () => {
    const { change, observed } = await changing("crashed", { a: "2" }, { a: "1", gone: "1" });
    await write(observed, change);
    await write(observed, change);
    await cluster.edit("crashed", { data: { a: "other" } });
    await expect(write(observed, change)).rejects.toMatchObject(outdated());
  });

  it("is repeated where the API server writes the fields otherwise, and adds some", async () => {
    const deployment = (cpu: string) =>
      cluster.deployment("web", 0, { resources: { limits: { cpu } }, ports: [{ containerPort: 80 }] });
    const outs = await made(deployment("1000m"));
    const change = update(outs, deployment("2000m"));
    const observed = await observe(change);
    const meshApplies = (name: string, image: string) => {
      const spec = { template: { spec: { containers: [{ name, image }] } } };
      return cluster.applyAs("mesh", { ...deployment("1"), spec });
    };
    await meshApplies("sidecar", "sidecar");
    await write(observed, change);
    await write(observed, change);
    await meshApplies("web", "other");
    await expect(write(observed, change)).rejects.toMatchObject(outdated(/containers\[name="web"\]\.image/));
  });
});

describe("a held creation of an object", () => {
  it("makes what was not there, with the same managers as any other", async () => {
    const { create, observed } = await creating("fresh");
    await write(observed, create);
    await made(cluster.configMap("usual", { a: "1" }));
    const managers = (await Promise.all(["fresh", "usual"].map((name) => cluster.find(name)))).map((live) =>
      live?.metadata.managedFields?.map(({ manager, operation, fieldsV1 }) => [manager, operation, fieldsV1]),
    );
    expect(managers[0]).toEqual(managers[1]);
  });

  it("adopts what was there when it looked", async () => {
    await cluster.client.create(cluster.configMap("found", { a: "0", theirs: "x" }));
    const { create, observed } = await creating("found");
    await write(observed, create);
    expect(await dataOf("found")).toEqual({ a: "1", theirs: "x" });
  });

  it("leaves what has appeared as it is", async () => {
    const { create, observed } = await creating("appeared");
    await cluster.client.create(cluster.configMap("appeared", { a: "theirs" }));
    await expect(write(observed, create)).rejects.toMatchObject(outdated());
    expect(await dataOf("appeared")).toEqual({ a: "theirs" });
  });

  it("leaves also what appears between its look and its write", async () => {
    const { create, observed } = await creating("late");
    rightBefore("applyNew", () => cluster.client.create(cluster.configMap("late", { a: "theirs" })));
    await expect(write(observed, create)).rejects.toMatchObject(outdated());
    const live = await cluster.find("late");
    expect([live?.data, live?.metadata.labels]).toEqual([{ a: "theirs" }, undefined]);
  });

  it("makes no object of a custom type twice either", async () => {
    const group = `${cluster.namespace}.example.com`;
    const type = { apiVersion: `${group}/v1`, kind: "Thing" };
    const things = definition(group, "Thing");
    await cluster.client.create(things);
    const thing = (size: number) => cluster.manifest(type, "a", { spec: { size } });
    await expect.poll(() => cluster.client.list(type).catch(() => undefined)).toMatchObject({ items: [] });
    const create = creation(thing(1));
    const observed = await observe(create);
    rightBefore("applyNew", () => cluster.client.create(thing(7)));
    await expect(write(observed, create)).rejects.toMatchObject(outdated());
    expect(await known(cluster.client.find(thing(1) as never))).toMatchObject({ spec: { size: 7 } });
    await cluster.client.delete(CRD, things.metadata.name ?? "");
  });

  it("is repeated after a crash, and is observed as if it had never been", async () => {
    const { create, observed } = await creating("twice");
    await write(observed, create);
    expect(await observe(create)).toEqual(observed);
    await write(observed, create);
    expect(await cluster.find("twice")).toMatchObject({ metadata: { annotations: { [CREATED_ANNOTATION]: "true" } } });
    await cluster.edit("twice", { data: { a: "other" } });
    await expect(write(observed, create)).rejects.toMatchObject(outdated());
  });

  it("takes no object of another owner that is just the same", async () => {
    const { create, observed } = await creating("theirs");
    await made(cluster.configMap("theirs", { a: "1" }), { owner: globex });
    await expect(write(observed, create)).rejects.toMatchObject(outdated());
  });

  it("goes on after what an object begins with, where it was cut off", async () => {
    const inputs = { initial: { manifest: cluster.configMap("begun", { size: "1" }), fieldManager: "begin" } };
    const { create, observed } = await creating("begun", inputs);
    const { apply } = KubernetesClient.prototype;
    const cut = vi.spyOn(KubernetesClient.prototype, "apply").mockImplementation(function (
      this: KubernetesClient,
      ...given
    ) {
      if (cut.mock.calls.length > 1) throw new RetryableError("LeaseLost", "a crash");
      return apply.apply(this, given);
    });
    await expect(write(observed, create)).rejects.toThrow("a crash");
    vi.restoreAllMocks();
    expect(await dataOf("begun")).toEqual({ size: "1" });
    await write(observed, create);
    expect(await dataOf("begun")).toEqual({ a: "1", size: "1" });
  });

  it("deletes what is in its place only if it saw it there", async () => {
    const { create, observed: absent } = await creating("reserved", { adopt: "replace" });
    await cluster.client.create(cluster.configMap("reserved", { a: "theirs" }));
    await expect(write(absent, create)).rejects.toMatchObject(outdated());
    expect(await dataOf("reserved")).toEqual({ a: "theirs" });
    await write(await observe(create), create);
    expect(await dataOf("reserved")).toEqual({ a: "1" });
  });
});

describe("a held deletion of an object", () => {
  it("deletes what is as it was, whatever else there is, and what is gone already", async () => {
    const { outs, observed } = await deleting("deleted");
    await cluster.edit("deleted", { data: { others: "x" } });
    rightBefore("delete", () => cluster.edit("deleted", { data: { others: "y" } }));
    await write(observed, deletion(outs));
    expect(await cluster.find("deleted")).toBeUndefined();
    await write(observed, deletion(outs));
  });

  it("leaves what has changed", async () => {
    const { outs, observed } = await deleting("kept");
    await cluster.edit("kept", { data: { a: "other" } });
    await expect(write(observed, deletion(outs))).rejects.toMatchObject(outdated(/data\.a/));
    expect(await dataOf("kept")).toEqual({ a: "other" });
  });

  it("leaves what changes between its look and its write", async () => {
    const { outs, observed } = await deleting("spared");
    rightBefore("delete", () => cluster.edit("spared", { data: { a: "other" } }));
    await expect(write(observed, deletion(outs))).rejects.toMatchObject(outdated());
    expect(await dataOf("spared")).toEqual({ a: "other" });
  });

  it("relinquishes what was found, again after a crash", async () => {
    await cluster.client.create(cluster.configMap("adopted", { theirs: "x" }));
    const outs = await made(cluster.configMap("adopted", { a: "1" }));
    const observed = await observe(deletion(outs));
    await write(observed, deletion(outs));
    await write(observed, deletion(outs));
    const live = await cluster.find("adopted");
    expect([live?.data, live?.metadata.labels?.[OWNER_UID_LABEL]]).toEqual([{ theirs: "x" }, undefined]);
  });

  it("ends the rights of what a finalizer keeps, and is repeated", async () => {
    const apiGroup = "rbac.authorization.k8s.io";
    const roleRef = { apiGroup, kind: "ClusterRole", name: "view" };
    const subjects = [{ apiGroup, kind: "User", name: "eve" }];
    const binding = cluster.manifest(ROLE_BINDING, "held", { roleRef, subjects }, HELD);
    const outs = await made(binding, { awaitDeletion: false });
    const observed = await observe(deletion(outs));
    await write(observed, deletion(outs));
    const held = await cluster.find("held", ROLE_BINDING);
    expect([held?.subjects ?? [], held?.metadata.deletionTimestamp]).toEqual([[], expect.any(String)]);
    await write(observed, deletion(outs));
    await cluster.removeFinalizers("held", ROLE_BINDING);
  });
});
