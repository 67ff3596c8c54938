import { execa } from "execa";
import { afterAll, beforeAll, describe, expect, inject, it, vi } from "vitest";
import type { Manifest, ObjectMeta, ResourceType } from "../../../providers/kubernetes/client";
import { installKinds } from "../../../src/watcher/install";
import { FINALIZER, holdPolicy } from "../../../stacks/contract/hold";
import { type AnyKind, kindApiVersion, kindName } from "../../../stacks/contract/kind";
import { PAUSED_ANNOTATION } from "../../../stacks/contract/object";
import { STACK_NUMBER_ANNOTATION } from "../../../stacks/contract/shared-stack";
import { postgresWriter } from "../../../stacks/postgres-writer/kind";
import { TestCluster } from "../../providers/kubernetes/test-cluster";

/* Two kinds that nobody reconciles: one whose objects share stacks, and one whose objects do not. */

const SHARED: AnyKind = { ...postgresWriter, group: "shared.hold.test" };
const OWN: AnyKind = { ...postgresWriter, group: "own.hold.test", granularity: "object" };
const DEFAULT = { [STACK_NUMBER_ANNOTATION]: "0" };

const { kubeconfig } = inject("cluster");
let cluster: TestCluster;

beforeAll(async () => {
  cluster = await TestCluster.open({ kubeconfig });
  await installKinds(cluster.client, [SHARED, OWN]);
  // Policies take effect a moment after they are stored.
  for (const kind of [SHARED, OWN]) {
    const isHeld = async () => expect(await made(kind, "first", {}, true)).toMatchObject({ finalizers: [FINALIZER] });
    await vi.waitFor(isHeld, { timeout: 20_000, interval: 100 });
  }
});
afterAll(async () => {
  for (const kind of [SHARED, OWN]) {
    for (const { kind: type, apiVersion, metadata } of holdPolicy(kind)) {
      await cluster.client.delete(await cluster.client.resourceType(apiVersion, type), metadata.name ?? "");
    }
    const crds = await cluster.client.resourceType("apiextensions.k8s.io/v1", "CustomResourceDefinition");
    await cluster.client.delete(crds, kindName(kind));
  }
  await cluster.close();
});

function manifest(kind: AnyKind, name: string, metadata: Manifest["metadata"] = {}): Manifest {
  return {
    apiVersion: kindApiVersion(kind),
    kind: kind.kind,
    metadata: { name, namespace: cluster.namespace, ...metadata },
    spec: { table: "students", name: "alex", age: 23, country: "canada" },
  };
}

function typeOf(kind: AnyKind): Promise<ResourceType> {
  return cluster.client.resourceType(kindApiVersion(kind), kind.kind);
}

/** The metadata of a new object, as somebody who knows nothing of Kindstack makes it. */
async function made(kind: AnyKind, name: string, metadata = {}, dryRun = false): Promise<ObjectMeta> {
  const { plural } = await typeOf(kind);
  const path = `/apis/${kindApiVersion(kind)}/namespaces/${cluster.namespace}/${plural}`;
  const query = { fieldManager: "someone", dryRun: dryRun ? "All" : undefined };
  const object = await cluster.client.json<{ metadata: ObjectMeta }>("POST", path, {
    query,
    body: manifest(kind, name, metadata),
  });
  return object.metadata;
}

describe("a new object", () => {
  it("has the finalizer, and is in the first stack where its kind shares them", async () => {
    expect(await made(SHARED, "plain")).toMatchObject({ finalizers: [FINALIZER], annotations: DEFAULT });
    const own = await made(OWN, "plain");
    expect(own.finalizers).toEqual([FINALIZER]);
    expect(own.annotations).toBeUndefined();
  });

  it("keeps what it was made with", async () => {
    const finalizers = ["example.com/a"];
    const annotations = { note: "theirs", [STACK_NUMBER_ANNOTATION]: "7" };
    const metadata = await made(SHARED, "rich", { finalizers, annotations });
    expect(metadata.finalizers?.toSorted()).toEqual(["example.com/a", FINALIZER]);
    expect(metadata.annotations).toEqual(annotations);
  });

  it("can be deleted while it is paused", async () => {
    const paused = await made(SHARED, "paused", { annotations: { [PAUSED_ANNOTATION]: "true" } });
    expect(paused.finalizers).toBeUndefined();
    expect(await made(SHARED, "unpaused", { annotations: { [PAUSED_ANNOTATION]: "false" } })).toMatchObject({
      finalizers: [FINALIZER],
    });
  });

  it.each([
    ["kubectl apply", []],
    ["kubectl apply --server-side", ["--server-side"]],
  ])("keeps the finalizer with every further %s", async (how, flags) => {
    const name = `applied-${flags.length}`;
    const apply = async (age: number) => {
      const object = { ...manifest(SHARED, name), spec: { table: "students", name: "alex", age, country: "canada" } };
      const options = { input: JSON.stringify(object), env: { KUBECONFIG: kubeconfig } };
      const { stdout } = await execa("kubectl", ["apply", ...flags, "-f", "-", "-o", "json"], options);
      return (JSON.parse(stdout) as { metadata: ObjectMeta }).metadata;
    };
    for (const age of [1, 2, 3]) {
      const metadata = await apply(age);
      expect(metadata, `${how} of the age ${age}`).toMatchObject({
        generation: age,
        finalizers: [FINALIZER],
        annotations: DEFAULT,
      });
    }
  });
});
