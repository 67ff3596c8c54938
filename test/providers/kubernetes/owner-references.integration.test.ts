import { describe, expect, it } from "vitest";
import { FIELD_MANAGER, known, type LiveObject, type Manifest } from "../../../providers/kubernetes/client";
import { provider } from "../../../providers/kubernetes/object";
import type { ObjectInputs, ObjectOutputs } from "../../../providers/kubernetes/object-inputs";
import { correctedReferences } from "../../../providers/kubernetes/owner-references";
import { ownedFieldsDigest } from "../../../providers/kubernetes/ownership";
import { eventually } from "../../../src/testing/eventually";
import { acme } from "../../objects";
import { CONFIG_MAP, TestCluster } from "./test-cluster";

/*
 * References to the stack's object, with the real garbage collector. A ConfigMap is the object.
 */

const cluster = TestCluster.use();

/** An object, and what a program gives for it with a reference to it. */
async function made(name: string, of: (ownerReferences: object[]) => Manifest) {
  const boss = await cluster.applyAs("someone", cluster.configMap(`${name}-boss`));
  const { uid } = boss.metadata;
  const reference = { apiVersion: "v1", kind: "ConfigMap", name: boss.metadata.name, uid, controller: true };
  const given: ObjectInputs = { manifest: of([{ ...reference, blockOwnerDeletion: true }]), owner: { ...acme, uid } };
  const { inputs, failures } = await provider.check({}, given as never);
  expect(failures).toEqual([]);
  return { boss, reference, given, inputs: inputs as unknown as ObjectInputs };
}

const mapOf = (name: string, data: Record<string, string>) => (ownerReferences: object[]) =>
  cluster.configMap(name, data, { ownerReferences: ownerReferences as never });
const podOf = (name: string) => (ownerReferences: object[]) =>
  cluster.pod(name, "a:1", { ownerReferences: ownerReferences as never });
const liveOf = (manifest: Manifest) => known(cluster.client.find(manifest as never)) as Promise<LiveObject>;
const referencesOf = async (manifest: Manifest) =>
  (await liveOf(manifest)).metadata.ownerReferences?.map(({ kind, name }) => `${kind} ${name}`);

/** As `kubectl delete --cascade=foreground` does. */
async function removeInForeground(boss: LiveObject): Promise<void> {
  await cluster.client.delete(CONFIG_MAP, boss.metadata.name, cluster.namespace, { propagationPolicy: "Foreground" });
  await eventually(async () => expect(await cluster.find(boss.metadata.name)).toBeUndefined());
}

describe("a reference of a program to its object", () => {
  it("is not written, so that the garbage collector does not delete what was made", async () => {
    const { boss, inputs } = await made("plain", mapOf("plain", { a: "1" }));
    await provider.create(inputs);
    expect(await referencesOf(inputs.manifest)).toBeUndefined();
    await removeInForeground(boss);
    expect(await cluster.find("plain")).toMatchObject({ data: { a: "1" } });
  });

  it("is a Pod's controller beside its namespace: the garbage collector drops the one that ends", async () => {
    const { boss, inputs } = await made("pod", podOf("pod"));
    const { outs } = await provider.create(inputs);
    const both = [`ConfigMap ${boss.metadata.name}`, `Namespace ${cluster.namespace}`];
    expect(await referencesOf(inputs.manifest)).toEqual(both);
    expect((await provider.read("id", outs)).props).toMatchObject({ drifted: false });
    await provider.update("id", outs, inputs);
    expect(await referencesOf(inputs.manifest)).toEqual(both);
    await removeInForeground(boss);
    expect(await referencesOf(inputs.manifest)).toEqual([`Namespace ${cluster.namespace}`]);
    await provider.delete("id", outs);
  });

  it("leaves one to another object as it is", async () => {
    const other = await cluster.applyAs("someone", cluster.configMap("other"));
    const theirs = { apiVersion: "v1", kind: "ConfigMap", name: "other", uid: other.metadata.uid };
    const { inputs } = await made("shared", (own) => mapOf("shared", { a: "1" })([...own, theirs]));
    await provider.create(inputs);
    expect(await referencesOf(inputs.manifest)).toEqual(["ConfigMap other"]);
  });
});

describe("a reference that an earlier release has applied", () => {
  it("is no difference, neither while it is there nor when it has been removed", async () => {
    const { reference, given, inputs } = await made("earlier", mapOf("earlier", { a: "1" }));
    const { outs } = await provider.create(inputs);
    const live = await liveOf(inputs.manifest);
    const { labels, annotations } = live.metadata;
    const metadata = { ...given.manifest.metadata, labels: labels ?? {}, annotations: annotations ?? {} };
    const { object } = await cluster.client.apply({ ...given.manifest, metadata }, { fieldManager: FIELD_MANAGER });
    const { deletedWith: _, ...state }: ObjectOutputs = { ...outs, ...given, fields: ownedFieldsDigest(object) };
    expect(state.fields).not.toBe(outs.fields);

    const same = async () => {
      const { props } = await provider.read("id", state);
      expect(props).toEqual({ ...state, drifted: false });
      expect(await provider.diff("id", props as ObjectOutputs, inputs)).toEqual({ changes: false });
    };
    await same();
    const corrected = await correctedReferences(cluster.client, object, reference.uid);
    expect(corrected).toEqual([]);
    await cluster.edit("earlier", { metadata: { ownerReferences: corrected } });
    expect(await referencesOf(inputs.manifest)).toBeUndefined();
    await same();
    await cluster.edit("earlier", { data: { a: "2" } });
    expect((await provider.read("id", state)).props).toMatchObject({ drifted: true });
  });

  it("is completed on a Pod, which is no difference either", async () => {
    const { boss, reference, inputs } = await made("older-pod", podOf("older-pod"));
    const { outs } = await provider.create(inputs);
    const live = await liveOf(inputs.manifest);
    expect(await correctedReferences(cluster.client, live, reference.uid)).toBeUndefined();
    const alone = { ...live, metadata: { ...live.metadata, ownerReferences: [reference] } };
    const corrected = await correctedReferences(cluster.client, alone, boss.metadata.uid);
    expect(corrected).toMatchObject([{ uid: reference.uid }, { kind: "Namespace", name: cluster.namespace }]);
    await provider.delete("id", outs);
  });
});
