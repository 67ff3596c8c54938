import { beforeAll, describe, expect, it } from "vitest";
import { ObjectWriter } from "../../src/controller/object-writer";
import { ReadYourWrites } from "../../src/controller/own-writes";
import { FINALIZER } from "../../stacks/contract/object";
import { postgresWriter } from "../../stacks/kinds/postgres-writer/kind";
import { CONFIG_MAP, TestCluster } from "../providers/kubernetes/test-cluster";

/* What is written to an object beside its status, on ConfigMaps: metadata is the same for all types. */

const cluster = TestCluster.use();
let writer: ObjectWriter;

beforeAll(async () => {
  writer = new ObjectWriter({
    kind: postgresWriter,
    client: cluster.client,
    cache: { object: () => undefined, owned: () => [], view: () => undefined, unserved: () => undefined },
    freshness: { holds: () => false, wrote: () => {} },
    recorder: { event: () => {}, wrote: () => {} },
    metrics: { loosened: () => {} },
  });
});

const make = (name: string, finalizers: string[] = []) =>
  cluster.client.create(cluster.configMap(name, {}, { finalizers }));
const finalizersOf = async (name: string) => (await cluster.find(name))?.metadata.finalizers;
const setFinalizers = (name: string, finalizers: string[] | null) => cluster.edit(name, { metadata: { finalizers } });

it("the finalizer of an object that another kind makes leaves what is applied, and stays when that is applied again", async () => {
  const applied = cluster.configMap("child", { size: "1" });
  const { object } = await cluster.client.apply(applied);
  await writer.addFinalizer(object, new ReadYourWrites());
  expect((await cluster.find("child"))?.data).toEqual({ size: "1" });
  await cluster.client.apply({ ...applied, data: { size: "2" } });
  expect(await finalizersOf("child")).toEqual([FINALIZER]);
  await setFinalizers("child", null);
});

describe("releasing an object", () => {
  it("takes off the finalizer, whichever manager has set it, and no other", async () => {
    const made = await make("others", ["example.com/a", FINALIZER, "example.com/b"]);
    const left = await writer.removeFinalizer(made, new ReadYourWrites());
    expect(left.metadata.finalizers).toEqual(["example.com/a", "example.com/b"]);
    await setFinalizers("others", null);
  });

  it("takes off one that it set itself", async () => {
    const writes = new ReadYourWrites();
    const held = await writer.addFinalizer(await make("held"), writes);
    expect(held.metadata.finalizers).toEqual([FINALIZER]);
    await writer.removeFinalizer(held, writes);
    expect(await finalizersOf("held")).toBeUndefined();
  });

  it("finds it where it is by now", async () => {
    const shown = await make("moved", ["example.com/a", FINALIZER]);
    await setFinalizers("moved", [FINALIZER]);
    await writer.removeFinalizer(shown, new ReadYourWrites());
    expect(await finalizersOf("moved")).toBeUndefined();
  });

  it("is content when another client took it off", async () => {
    const shown = await make("taken", ["example.com/a", FINALIZER]);
    await setFinalizers("taken", ["example.com/a"]);
    await writer.removeFinalizer(shown, new ReadYourWrites());
    expect(await finalizersOf("taken")).toEqual(["example.com/a"]);
    await setFinalizers("taken", null);
  });

  it("does not touch a successor", async () => {
    const first = await make("successor", [FINALIZER]);
    await setFinalizers("successor", null);
    await cluster.client.delete(CONFIG_MAP, "successor", cluster.namespace);
    await make("successor", [FINALIZER]);
    await expect(writer.removeFinalizer(first, new ReadYourWrites())).rejects.toMatchObject({ status: 409 });
    expect(await finalizersOf("successor")).toEqual([FINALIZER]);
    await setFinalizers("successor", null);
  });
});
