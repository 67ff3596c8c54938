import { beforeAll, describe, expect, it } from "vitest";
import type { LiveObject, Manifest } from "../../providers/kubernetes/client";
import { eventually } from "../../src/testing/eventually";
import type { Condition } from "../../stacks/contract/condition";
import { statusOf } from "../../stacks/contract/kind";
import { applyUntilReady, conditionOf, untilGone, untilReady, untilSynced } from "./conditions";
import { kubectl, noKubectl } from "./kubectl";
import { deploymentOf, memcached, namespace, POD, sampleFile, uniqueName } from "./manifests";
import { apply, client, create, edit, eventsAbout, find, get, remove } from "./objects";
import { useOperator } from "./operator";

const operator = useOperator({ args: ["--concurrency", "8"], env: { MEMCACHED_IMAGE: "" } });

/** A namespace that only lets Pods in that meet the restricted Pod security standard. */
const restricted = uniqueName("restricted");
beforeAll(async () => {
  await create(namespace(restricted, { labels: { "pod-security.kubernetes.io/enforce": "restricted" } }));
  return () => remove(namespace(restricted));
});

const { file, manifest } = sampleFile("memcached");
const sample: Manifest = { ...manifest, metadata: { ...manifest.metadata, namespace: restricted } };

interface PodSpec {
  containers: { image: string; ports: object[] }[];
}
interface DeploymentSpec {
  replicas: number;
  template: { spec: PodSpec };
}
async function podsOf(object: Manifest): Promise<LiveObject[]> {
  const labelSelector = `app.kubernetes.io/instance=${object.metadata.name}`;
  const { items } = await client.list(POD, { namespace: object.metadata.namespace ?? "", labelSelector });
  return items;
}
const specOf = async (object: Manifest) => (await get(deploymentOf(object))).spec as DeploymentSpec;

/** Waits until the Deployment is available as it is now specified, and Memcached says so. */
function untilAvailable(object: Manifest): Promise<LiveObject> {
  return eventually(async () => {
    const live = await get(object);
    expect(conditionOf(live, "Ready")).toMatchObject({ status: "True", observedGeneration: live.metadata.generation });
    expect(summaryOf(live)).toEqual([
      "Available=True Reconciling",
      "Progressing=False Reconciling",
      "Degraded=False Reconciling",
    ]);
    return live;
  });
}

/** `Available=True Reconciling` and the like, of the conditions that are Memcached's own. */
function summaryOf(object: LiveObject): string[] {
  const own = ["Available", "Progressing", "Degraded"];
  return (statusOf(object).conditions ?? [])
    .filter(({ type }) => own.includes(type))
    .map(({ type, status, reason }: Condition) => `${type}=${status} ${reason}`);
}

/** Lets nobody make any more of a resource in the restricted namespace. */
async function limit(resource: string): Promise<{ lift(): Promise<unknown> }> {
  const name = uniqueName("none");
  const path = `/api/v1/namespaces/${restricted}/resourcequotas`;
  await client.json("POST", path, {
    body: { apiVersion: "v1", kind: "ResourceQuota", metadata: { name }, spec: { hard: { [resource]: "0" } } },
  });
  // A quota holds from when its use has been counted.
  await eventually(async () => {
    expect(await client.json("GET", `${path}/${name}`)).toMatchObject({ status: { used: expect.anything() } });
  });
  return { lift: () => client.json("DELETE", `${path}/${name}`) };
}

describe("the sample Memcached", () => {
  it.skipIf(noKubectl)("is taken by kubectl as it is", async () => {
    const applied = await kubectl(["apply", "--namespace", restricted, "-f", file]);
    expect(applied).toMatchObject({ exitCode: 0, stderr: "" });
    await untilReady(sample);
  });

  it("runs where only restricted Pods may", async () => {
    await apply(sample);
    const live = await untilAvailable(sample);
    const [pod, ...more] = await podsOf(sample);
    expect(more).toEqual([]);
    expect(pod).toMatchObject({
      status: { phase: "Running" },
      spec: {
        securityContext: { runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } },
        containers: [
          {
            image: "memcached:1.4.36-alpine",
            command: ["memcached", "-m=64", "-o", "modern", "-v", "-p", "11211"],
            ports: [{ name: "memcached", containerPort: 11211 }],
            securityContext: { runAsUser: 1001, allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } },
          },
        ],
      },
    });
    expect(conditionOf(live, "Available").message).toBe(
      "Deployment for custom resource (memcached-sample) with 1 replicas created successfully",
    );
  });

  it("is rolled when its port changes", async () => {
    const before = await get(deploymentOf(sample));
    const old = (await podsOf(sample)).map(({ metadata }) => metadata.uid);
    await edit(sample, { spec: { containerPort: 11212 } });
    await untilAvailable(sample);

    expect((await get(deploymentOf(sample))).metadata.uid).toBe(before.metadata.uid);
    await eventually(async () => {
      const pods = await podsOf(sample);
      expect(pods.filter(({ metadata }) => old.includes(metadata.uid))).toEqual([]);
      expect(pods.map(({ spec }) => (spec as PodSpec).containers[0]?.ports)).toEqual([
        [expect.objectContaining({ name: "memcached", containerPort: 11212 })],
      ]);
    });
  });

  it("is finalized, and gone when all that it made is gone", async () => {
    const live = await get(sample);
    const [held] = (await podsOf(sample)) as [LiveObject, ...LiveObject[]];
    await edit(held, { metadata: { finalizers: ["example.com/held"] } });
    await remove(sample);
    await eventually(async () =>
      expect(summaryOf(await get(sample))).toEqual([
        "Available=False Finalizing",
        "Progressing=True Finalizing",
        "Degraded=Unknown Finalizing",
      ]),
    );
    await eventually(async () =>
      expect((await get(deploymentOf(sample))).metadata.deletionTimestamp).toEqual(expect.any(String)),
    );
    await edit(held, { metadata: { finalizers: null } });
    await untilGone(sample);
    expect(await find(deploymentOf(sample))).toBeUndefined();
    expect(await podsOf(sample)).toEqual([]);
    await eventually(() => expect(operator.stateFiles("memcached-sample")).toEqual([]));

    await eventually(async () => {
      expect(await eventsAbout(live)).toContainEqual(
        expect.objectContaining({
          type: "Normal",
          reason: "Deleting",
          note: `Custom Resource memcached-sample is being deleted from the namespace ${restricted}`,
        }),
      );
    });
  });
});

describe("a Memcached", () => {
  it("has one instance on port 11211 where nothing else is said", async () => {
    const object = memcached(uniqueName("default"));
    await applyUntilReady(object);
    expect((await get(object)).spec).toEqual({ size: 1, containerPort: 11211 });
    expect(await specOf(object)).toMatchObject({ replicas: 1 });
  });

  it("is not Ready with none of two instances, says so without an update, and is Ready when they run", async () => {
    const object = memcached(uniqueName("starved"), { size: 2 }, restricted);
    const quota = await limit("pods");
    await apply(object);
    const starved = await eventually(async () => {
      const live = await untilSynced(object);
      expect(conditionOf(live, "Ready")).toMatchObject({
        status: "False",
        reason: "Progressing",
        message: expect.stringMatching(
          new RegExp(`^Deployment ${restricted}/${object.metadata.name}: pods .* is forbidden: exceeded quota`),
        ),
      });
      expect(conditionOf(live, "Degraded")).toMatchObject({
        status: "True",
        message: expect.stringContaining("exceeded quota"),
      });
      return live;
    });
    expect(conditionOf(starved, "Reconciling").message).toBe(conditionOf(starved, "Ready").message);
    const updates = await operator.metric("kindstack_updates_total");

    await quota.lift();
    await untilReady(object);
    expect(await operator.metric("kindstack_updates_total")).toBe(updates);
  });
});
