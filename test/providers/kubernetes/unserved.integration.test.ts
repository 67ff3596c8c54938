import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { known, type LiveObject, type Manifest } from "../../../providers/kubernetes/client";
import { provider } from "../../../providers/kubernetes/object";
import { removeUntrackedObject } from "../../../providers/kubernetes/remove-object";
import { eventually } from "../../../src/testing/eventually";
import { TestCluster } from "./test-cluster";

/*
 * Objects of a CRD with two versions, of which the older one is withdrawn, as upgrades do it.
 */

const CRD = { apiVersion: "apiextensions.k8s.io/v1", kind: "CustomResourceDefinition" };
const GROUP = "unserved.kindstack.dev";
const V1 = { apiVersion: `${GROUP}/v1`, kind: "Widget" };
const OLD = { apiVersion: `${GROUP}/v1alpha1`, kind: "Widget" };
const definition = (kind: string, ...served: string[]): Manifest => {
  const plural = `${kind.toLowerCase()}s`;
  const schema = {
    openAPIV3Schema: {
      type: "object",
      properties: { spec: { type: "object", properties: { size: { type: "integer" } } } },
    },
  };
  return {
    ...CRD,
    metadata: { name: `${plural}.${GROUP}` },
    spec: {
      group: GROUP,
      scope: "Namespaced",
      names: { kind, listKind: `${kind}List`, plural, singular: kind.toLowerCase() },
      versions: ["v1alpha1", "v1"].map((name) => ({
        name,
        served: served.includes(name),
        storage: name === "v1",
        schema,
      })),
    },
  };
};

const cluster = TestCluster.use();
const owner = { uid: "unserved-test", description: "the test of unserved types" };
const inputs = (size: number) => ({
  owner,
  manifest: { ...OLD, metadata: { name: "one", namespace: cluster.namespace }, spec: { size } },
});
const inV1 = () => known(cluster.client.get(V1, "one", cluster.namespace));

/** Waits until the API server serves these versions of the kind, and no other. */
async function serve(...versions: string[]): Promise<void> {
  await cluster.client.apply(definition("Widget", ...versions));
  await eventually(async () => {
    for (const version of ["v1", "v1alpha1"]) {
      const path = `/apis/${GROUP}/${version}/widgets`;
      const isServed = await cluster.client.json("GET", path).then(
        () => true,
        () => false,
      );
      expect(isServed, version).toBe(versions.includes(version));
    }
    const { groups } = await cluster.client.json<{ groups: { name: string; versions: { version: string }[] }[] }>(
      "GET",
      "/apis",
    );
    const group = groups.find(({ name }) => name === GROUP);
    expect(new Set(group?.versions.map(({ version }) => version))).toEqual(new Set(versions));
  });
}

async function removeDefinition(plural: string): Promise<void> {
  await cluster.client.delete(CRD, `${plural}.${GROUP}`);
  await eventually(async () => expect(await known(cluster.client.get(CRD, `${plural}.${GROUP}`))).toBeUndefined());
}

beforeEach(async () => {
  await serve("v1", "v1alpha1");
});
afterEach(async () => {
  await removeDefinition("widgets");
  await removeDefinition("gadgets");
});

describe("an object whose version is not served any more", () => {
  it("is read, and deleted, in another version of its group", async () => {
    const { id, outs } = await provider.create(inputs(1));
    await serve("v1");

    expect(await provider.read?.(id, outs)).toMatchObject({ id, props: { uid: outs?.uid, drifted: false } });
    const moved = { reason: "UnknownKind", message: expect.stringContaining(`it is served in ${V1.apiVersion}`) };
    await expect(provider.update?.(id, outs, inputs(2))).rejects.toMatchObject(moved);
    await expect(provider.create(inputs(2))).rejects.toMatchObject(moved); // no state has it
    expect(await inV1()).toMatchObject({ spec: { size: 1 } });
    await provider.delete?.(id, outs);
    expect(await inV1()).toBeUndefined();
  });

  it("is not deleted there when it is another object by now", async () => {
    const { id, outs } = await provider.create(inputs(1));
    await cluster.client.delete(OLD, "one", cluster.namespace);
    await serve("v1");
    const metadata = { name: "one", namespace: cluster.namespace };
    await cluster.client.create({ ...V1, metadata, spec: { size: 7 } });

    await provider.delete?.(id, outs);
    expect(await inV1()).toMatchObject({ spec: { size: 7 } });
  });

  it("is released in another version of its group", async () => {
    const { id, outs } = await provider.create(inputs(1));
    await serve("v1");
    await provider.release?.(id, outs);
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

    await expect(provider.read?.(id, outs)).rejects.toMatchObject(unknown);
    await expect(provider.delete?.(id, outs)).rejects.toMatchObject(unknown);
    await expect(provider.release?.(id, outs)).rejects.toMatchObject(unknown);
    await expect(provider.observe?.(undefined, outs)).rejects.toMatchObject(unknown);
    await expect(provider.create(inputs(1))).rejects.toMatchObject({ reason: "UnknownKind" });
    await expect(cluster.client.listInAnyVersion(OLD)).rejects.toMatchObject(unknown);
    await serve("v1", "v1alpha1");
    expect((await inV1())?.metadata.uid).toBe(outs?.uid);
    await provider.delete?.(id, outs);
    expect(await inV1()).toBeUndefined();
  });

  it("counts as gone when its CRD is deleted, also while other CRDs of the group exist", async () => {
    const { id, outs } = await provider.create(inputs(1));
    await cluster.client.apply(definition("Gadget", "v1"));
    await removeDefinition("widgets");
    expect(await provider.read?.(id, outs)).toEqual({});
    await provider.delete?.(id, outs);

    await removeDefinition("gadgets");
    // Discovery shows the group for a while after its last definition; what no definition explains may have objects.
    await eventually(async () => expect(await cluster.client.listInAnyVersion(OLD)).toEqual([]));
    await provider.delete?.(id, outs);
  });
});
