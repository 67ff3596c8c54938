import { describe, expect, it } from "vitest";
import type { LiveObject, Manifest } from "../../providers/kubernetes/client";
import { OWNER_ANNOTATION, OWNER_UID_LABEL } from "../../providers/kubernetes/ownership";
import { eventually } from "../../src/testing/eventually";
import { ownerDescription } from "../../stacks/contract/kind";
import { controllerReference, type KindObject } from "../../stacks/contract/object";
import { podSet as podSetKind } from "../../stacks/kinds/podset/kind";
import { isCounted } from "../../stacks/kinds/podset/pods";
import { conditionOf, removeUntilGone, untilCondition, untilReady } from "./conditions";
import { kubectl, noKubectl } from "./kubectl";
import { namespace, objectOf, POD, podSet, sampleFile, uniqueName } from "./manifests";
import { apply, client, create, edit, get, remove } from "./objects";
import { useOperator } from "./operator";

const operator = useOperator({ args: ["--concurrency", "8"] });

/** All Pods with the labels of a PodSet, regardless of who made them. */
async function podsOf(name: string): Promise<LiveObject[]> {
  const { items } = await client.list(POD, { namespace: "default", labelSelector: `app=${name},version=v0.1` });
  return items;
}
const namesOf = (pods: LiveObject[]) => pods.map(({ metadata }) => metadata.name).sort();
const counted = async (name: string) => namesOf((await podsOf(name)).filter(isCounted));

/** Sets part of a Pod's status, as a kubelet would. */
async function report(podName: string, status: object): Promise<void> {
  await client.json("PATCH", `/api/v1/namespaces/default/pods/${podName}/status`, {
    contentType: "application/strategic-merge-patch+json",
    body: { status },
  });
}
const notReady = { conditions: [{ type: "Ready", status: "False" }] };

/** Waits until there are exactly so many Pods, those on their way out counted too, and the status says all of them. */
async function untilSettled(name: string, replicas: number): Promise<string[]> {
  await untilReady(podSet(name, replicas));
  return eventually(async () => {
    const pods = await podsOf(name);
    const names = namesOf(pods);
    expect(names).toHaveLength(replicas);
    expect(pods.every(isCounted)).toBe(true);
    const object = await get(podSet(name, replicas));
    const { podNames = [], ...status } = object.status as { podNames?: string[] };
    expect([...podNames].sort()).toEqual(names);
    expect(status).toMatchObject({ replicas, readyReplicas: replicas, observedGeneration: object.metadata.generation });
    expect(operator.locks()).toEqual([]);
    return names;
  });
}

async function settled(prefix: string, replicas: number): Promise<{ name: string; pods: string[] }> {
  const name = uniqueName(prefix);
  await apply(podSet(name, replicas));
  return { name, pods: await untilSettled(name, replicas) };
}

const scale = (name: string, replicas: number) => edit(podSet(name, replicas), { spec: { replicas } });

describe("the sample PodSet", () => {
  const { manifest } = sampleFile("podset");

  it("makes the Pods of the operator that it is from", async () => {
    await apply(manifest);
    const names = await untilSettled("podset-sample", 2);
    const object = (await get(manifest)) as KindObject & LiveObject;
    for (const name of names) {
      const pod = await get(objectOf(POD, name, "default"));
      expect(pod).toMatchObject({
        metadata: {
          generateName: "podset-sample-pod-",
          labels: { app: "podset-sample", version: "v0.1" },
          // The second owner keeps it when the first one is deleted in the foreground.
          ownerReferences: [controllerReference(object), { apiVersion: "v1", kind: "Namespace", name: "default" }],
        },
        spec: { containers: [{ image: "busybox", command: ["sleep", "3600"] }] },
      });
      expect(name).toMatch(/^podset-sample-pod-[a-z0-9]{5}$/);
    }
  });

  it("takes them and its state with it when it is deleted", async () => {
    await removeUntilGone(manifest);
    await eventually(async () => expect(await podsOf("podset-sample")).toEqual([]));
    await eventually(() => expect(operator.stateFiles("podset-sample")).toEqual([]));
  });
});

it("Pods of another namespace that claim to be a PodSet's count for nothing: neither by its UID nor by its name do they push out its own", async () => {
  const { name, pods } = await settled("claimed", 2);
  const { metadata } = await get(podSet(name, 2));
  const elsewhere = uniqueName("elsewhere");
  await create(namespace(elsewhere));
  const marks = [metadata.uid, "of-nobody"].map((uid) => ({
    labels: { [OWNER_UID_LABEL]: uid },
    annotations: { [OWNER_ANNOTATION]: ownerDescription(podSetKind, `default/${name}`) },
  }));
  for (const [index, mark] of marks.entries()) {
    const pod = {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: `forged-${index}`, namespace: elsewhere, ...mark },
    };
    const containers = [{ name: "a", image: "a" }];
    // A new namespace has its service account a moment later.
    await eventually(() => create({ ...pod, spec: { containers } }));
  }

  await scale(name, 3);
  const three = await untilSettled(name, 3);

  expect(three).toEqual(expect.arrayContaining(pods));
  await remove(namespace(elsewhere));
});

describe("a PodSet that is scaled", () => {
  it.skipIf(noKubectl)("is scaled by kubectl scale, and shown by kubectl get", async () => {
    const { name, pods } = await settled("kubectl", 1);
    expect((await kubectl(["scale", `podset/${name}`, "--replicas=3"])).stdout).toContain("scaled");
    expect(await untilSettled(name, 3)).toEqual(expect.arrayContaining(pods));

    const [, row = ""] = (await kubectl(["get", "podset", name])).stdout.split("\n");
    expect(row.split(/\s+/).slice(0, 4)).toEqual([name, "3", "3", "True"]);
  });

  it("ends with the right number when Pods are deleted meanwhile", async () => {
    const { name } = await settled("raced", 3);
    /** Scales, deletes some of the Pods that were there while the update runs, and looks for them afterwards. */
    const race = async (replicas: number, deletions: number) => {
      const deleted = (await podsOf(name)).slice(0, deletions);
      await operator.untilUpdating(1, () => scale(name, replicas));
      await Promise.all(deleted.map(remove));
      await eventually(async () => {
        const uids = (await podsOf(name)).map(({ metadata }) => metadata.uid);
        expect(deleted.filter(({ metadata }) => uids.includes(metadata.uid))).toEqual([]);
      });
      await untilSettled(name, replicas);
    };
    await race(6, 3);
    await race(2, 5);
  });
});

describe("a Pod of a PodSet", () => {
  it("that fails as the one before did is replaced later, which the PodSet says; a new number is made at once", async () => {
    const { name, pods } = await settled("failing", 1);
    await report(pods[0] ?? "", { phase: "Failed" });
    await eventually(async () => expect(namesOf(await podsOf(name))).not.toContain(pods[0]));
    const [next = ""] = await untilSettled(name, 1);
    await report(next, { phase: "Failed" });

    const object = await untilCondition(podSet(name, 1), "Reconciling", "True", "BackOff");

    expect(conditionOf(object, "Reconciling").message).toContain(next);
    expect(namesOf(await podsOf(name))).toEqual([next]);
    await scale(name, 2);
    await eventually(async () => expect(namesOf(await podsOf(name))).not.toContain(next));
    await untilSettled(name, 2);
  });

  it("that becomes ready or not is told by the status, and starts no update", async () => {
    const { name, pods } = await settled("status", 2);
    const updates = await operator.metric("kindstack_updates_total");
    await report(pods[0] ?? "", notReady);
    await eventually(async () => {
      const live = await get(podSet(name, 2));
      expect(live.status).toMatchObject({ readyReplicas: 1 });
      expect(conditionOf(live, "Synced").status).toBe("True");
      expect(conditionOf(live, "Ready")).toMatchObject({
        status: "False",
        message: `Pod default/${pods[0]}: it runs but is not ready`,
      });
    });
    await report(pods[0] ?? "", { conditions: [{ type: "Ready", status: "True" }] });
    await untilSettled(name, 2);
    expect(await operator.metric("kindstack_updates_total")).toBe(updates);
  });

  it("is left alone when it is another owner's, though it has the labels", async () => {
    const { name } = await settled("foreign", 2);
    const foreign: Manifest = {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: `${name}-foreign`, namespace: "default", labels: { app: name, version: "v0.1" } },
      spec: { containers: [{ name: "busybox", image: "busybox" }] },
    };
    const { uid } = (await create(foreign)).metadata;

    await scale(name, 1);
    await eventually(async () => expect(await counted(name)).toHaveLength(2));
    await untilReady(podSet(name, 1));
    await eventually(async () => expect((await get(podSet(name, 1))).status).toMatchObject({ replicas: 1 }));
    await removeUntilGone(podSet(name, 1));
    await eventually(async () => expect(namesOf(await podsOf(name))).toEqual([`${name}-foreign`]));
    expect((await get(foreign)).metadata).toMatchObject({ uid });
    await remove(foreign);
  });
});
