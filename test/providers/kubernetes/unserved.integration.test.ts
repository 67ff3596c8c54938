import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { known, type LiveObject } from "../../../providers/kubernetes/client";
import { provider } from "../../../providers/kubernetes/object";
import { removeUntrackedObject } from "../../../providers/kubernetes/remove-object";
import { eventually } from "../../../src/testing/eventually";
import { CRD, definition, TestCluster } from "./test-cluster";

/*
 * Objects of a CRD with two versions, of which the older one is withdrawn, as upgrades do it.
 */

const GROUP = "unserved.kindstack.dev";
const V1 = { apiVersion: `${GROUP}/v1`, kind: "Widget" };
const OLD = { apiVersion: `${GROUP}/v1alpha1`, kind: "Widget" };
const VERSIONS = ["v1alpha1", "v1"];

const cluster = TestCluster.use();
const owner = { uid: "unserved-test", description: "the test of unserved types" };
const inputs = (size: number) => ({ owner, manifest: cluster.manifest(OLD, "one", { spec: { size } }) });
const inV1 = () => known(cluster.client.get(V1, "one", cluster.namespace));

interface Groups {
  groups: { name: string; versions: { version: string }[] }[];
}

/** Waits until the API server serves these versions of the kind, and no other. */
async function serve(...versions: string[]): Promise<void> {
  await cluster.client.apply(definition(GROUP, "Widget", VERSIONS, versions));
  await eventually(async () => {
    const answers = VERSIONS.map((version) => cluster.client.json("GET", `/apis/${GROUP}/${version}/widgets`));
    const answered = (await Promise.allSettled(answers)).map(({ status }) => status === "fulfilled");
    expect(VERSIONS.filter((_, index) => answered[index])).toEqual(versions);
    const { groups } = await cluster.client.json<Groups>("GET", "/apis");
    const group = groups.find(({ name }) => name === GROUP);
    expect(new Set(group?.versions.map(({ version }) => version))).toEqual(new Set(versions));
  });
}

async function removeDefinition(plural: string): Promise<void> {
  await cluster.client.delete(CRD, `${plural}.${GROUP}`);
  await eventually(async () => expect(await known(cluster.client.get(CRD, `${plural}.${GROUP}`))).toBeUndefined());
}

beforeEach(async () => {
  await serve(...VERSIONS);
});
afterEach(async () => {
  await removeDefinition("widgets");
  await removeDefinition("gadgets");
});

describe("an object whose version is not served any more", () => {
  it("is read, and deleted, in another version of its group", async () => {
    const { id, outs } = await provider.create(inputs(1));
    await serve("v1");

    expect(await provider.read(id, outs)).toMatchObject({ id, props: { uid: outs?.uid, drifted: false } });
    const moved = { reason: "UnknownKind", message: expect.stringContaining(`it is served in ${V1.apiVersion}`) };
    await expect(provider.update(id, outs, inputs(2))).rejects.toMatchObject(moved);
    await expect(provider.create(inputs(2))).rejects.toMatchObject(moved); // no state has it
    expect(await inV1()).toMatchObject({ spec: { size: 1 } });
    await provider.delete(id, outs);
    expect(await inV1()).toBeUndefined();
  });

  it("is not deleted there when it is another object by now", async () => {
    const { id, outs } = await provider.create(inputs(1));
    await cluster.client.delete(OLD, "one", cluster.namespace);
    await serve("v1");
    await cluster.client.create(cluster.manifest(V1, "one", { spec: { size: 7 } }));

    await provider.delete(id, outs);
    expect(await inV1()).toMatchObject({ spec: { size: 7 } });
  });

  it("is released in another version of its group", async () => {
    const { id, outs } = await provider.create(inputs(1));
    await serve("v1");
    await provider.release(id, outs);
    expect((await inV1())?.metadata.labels).toBeUndefined();
  });

  it("is found as what no state knows, and removed", async () => {
    const { outs } = await provider.create(inputs(1));
    await serve("v1");
    const [seen] = await cluster.client.listInAnyVersion(OLD, { namespace: cluster.namespace });
    expect(seen?.metadata.uid).toBe(outs?.uid);
    await removeUntrackedObject(cluster.client, seen as LiveObject, { release: false });
    expect(await inV1()).toBeUndefined();
  });
});

describe("an object that no version shows", () => {
  const unknown = { reason: "UnknownKind", message: expect.stringContaining("serves no version") };

  it("counts as neither gone nor there, and is there when its type is served again", async () => {
    const { id, outs } = await provider.create(inputs(1));
    await serve();

    await expect(provider.read(id, outs)).rejects.toMatchObject(unknown);
    await expect(provider.delete(id, outs)).rejects.toMatchObject(unknown);
    await expect(provider.release(id, outs)).rejects.toMatchObject(unknown);
    await expect(provider.observe?.(undefined, outs)).rejects.toMatchObject(unknown);
    await expect(provider.create(inputs(1))).rejects.toMatchObject({ reason: "UnknownKind" });
    await expect(cluster.client.listInAnyVersion(OLD)).rejects.toMatchObject(unknown);
    await serve(...VERSIONS);
    expect((await inV1())?.metadata.uid).toBe(outs?.uid);
    await provider.delete(id, outs);
    expect(await inV1()).toBeUndefined();
  });

  it("counts as gone when its CRD is deleted, also while other CRDs of the group exist", async () => {
    const { id, outs } = await provider.create(inputs(1));
    await cluster.client.apply(definition(GROUP, "Gadget"));
    await removeDefinition("widgets");
    expect(await provider.read(id, outs)).toEqual({});
    await provider.delete(id, outs);

    await removeDefinition("gadgets");
    // Discovery shows the group for a while after its last definition; what no definition explains may have objects.
    await eventually(async () => expect(await cluster.client.listInAnyVersion(OLD)).toEqual([]));
    await provider.delete(id, outs);
  });
});
