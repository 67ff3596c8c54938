import fs from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { stringify } from "yaml";
import type { LiveObject, Manifest } from "../../providers/kubernetes/client";
import { OWNER_ANNOTATION, OWNER_UID_LABEL } from "../../providers/kubernetes/ownership";
import { findCondition } from "../../stacks/contract/condition";
import { type AnyKind, kindApiVersion, statusOf } from "../../stacks/contract/kind";
import { objectKey, PAUSED_ANNOTATION, RECONCILE_ANNOTATION } from "../../stacks/contract/object";
import { stackOf } from "../../stacks/contract/shared-stack";
import { memcached } from "../../stacks/memcached/kind";
import { podSet } from "../../stacks/podset/kind";
import { postgresWriter } from "../../stacks/postgres-writer/kind";
import { tenant } from "../../stacks/tenant/kind";
import { controlPlane } from "../control-plane";
import { TestDatabase } from "../providers/postgres/database";
import { eventually } from "./eventually";
import { client, uniqueName } from "./objects";
import { TestOperator } from "./operator";
import { PulumiProject } from "./pulumi";

const TIMEOUT_MS = 240_000;

const database = new TestDatabase(controlPlane().env);
const operator = new TestOperator({ env: { PSQL_DBNAME: database.name } });
let project: PulumiProject;
const folder = path.join(operator.directory, "crs");

beforeAll(async () => {
  await database.open();
  await database.query("CREATE TABLE students (id text PRIMARY KEY, name text, age integer, country text)");
  for (const directory of [folder, operator.stateDirectory]) fs.mkdirSync(directory, { recursive: true });
  project = await PulumiProject.open({
    PULUMI_BACKEND_URL: `file://${operator.stateDirectory}`,
    PSQL_DBNAME: database.name,
  });
});
afterAll(async () => {
  project?.close();
  await operator.dispose();
  await database.close();
});

/** A kind's object with a name of its own. */
function manifestOf(kind: AnyKind, name: string, spec: object): Manifest {
  const namespace = kind.scope === "Namespaced" ? { namespace: "default" } : {};
  return { apiVersion: kindApiVersion(kind), kind: kind.kind, metadata: { name, ...namespace }, spec };
}

function write(name: string, ...manifests: Manifest[]): string {
  const file = path.join(folder, `${name}.yaml`);
  fs.writeFileSync(file, manifests.map((manifest) => stringify(manifest)).join("---\n"));
  return file;
}

/** What is alive in the cluster of what an object made, by `Kind/name`: its UID. */
async function madeFor(kind: AnyKind, manifest: Manifest): Promise<Map<string, LiveObject>> {
  const description = `${kind.kind}.${kind.group}/${objectKey(manifest.metadata)}`;
  const lists = await Promise.all(
    kind.owns.map(async (type) =>
      client.list(await client.resourceType(type.apiVersion, type.kind), { labelSelector: OWNER_UID_LABEL }),
    ),
  );
  const made = lists
    .flatMap(({ items }) => items)
    .filter(({ metadata }) => metadata.annotations?.[OWNER_ANNOTATION] === description)
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  return new Map(made.map((object) => [`${object.kind}/${object.metadata.name}`, object]));
}

const uidsOf = (objects: Map<string, LiveObject>) =>
  [...objects].map(([name, { metadata }]) => `${name} ${metadata.uid}`).sort();
const ownersOf = (objects: Map<string, LiveObject>) => [
  ...new Set([...objects.values()].map(({ metadata }) => metadata.labels?.[OWNER_UID_LABEL])),
];
const rows = () => database.query<{ id: string; age: number }>("SELECT id, age FROM students ORDER BY id");

async function edit(manifest: Manifest, patch: object): Promise<void> {
  const type = await client.resourceType(manifest.apiVersion, manifest.kind);
  await client.mergePatch(type, manifest.metadata.name ?? "", manifest.metadata.namespace, patch);
}

async function remove(manifest: Manifest): Promise<void> {
  const type = await client.resourceType(manifest.apiVersion, manifest.kind);
  await client.delete(type, manifest.metadata.name ?? "", manifest.metadata.namespace);
}

async function find(manifest: Manifest): Promise<LiveObject | undefined> {
  const type = await client.resourceType(manifest.apiVersion, manifest.kind);
  return client.get(type, manifest.metadata.name ?? "", manifest.metadata.namespace);
}

async function apply(manifest: Manifest): Promise<LiveObject> {
  const type = await client.resourceType(manifest.apiVersion, manifest.kind);
  return (await client.apply(type, manifest, { fieldManager: "someone" })).object;
}

describe("pulumi up of several objects, without an operator", () => {
  const stack = uniqueName("many");
  const names = {
    tenant: uniqueName("tenant"),
    pods: uniqueName("pods"),
    row: uniqueName("row"),
    mc: uniqueName("mc"),
  };
  const acme = (spec: object = {}) =>
    manifestOf(tenant, names.tenant, {
      adminEmail: "a@example.com",
      adminGroups: ["admins"],
      namespaces: [names.tenant],
      ...spec,
    });
  const pods = (replicas: number) => manifestOf(podSet, names.pods, { replicas });
  const writer = (age: number) =>
    manifestOf(postgresWriter, names.row, { table: "students", name: "alex", age, country: "canada" });
  const cache = manifestOf(memcached, names.mc, {});
  const bindings = { kind: "RoleBinding", apiVersion: "rbac.authorization.k8s.io/v1" };

  it("previews all of it and makes none of it", { timeout: TIMEOUT_MS }, async () => {
    write("workloads", pods(2), cache);
    write("rest", acme(), writer(23));
    await project.init(stack);
    project.configure(stack, { manifests: [folder] });

    const { exitCode, output } = await project.preview(stack);

    expect(exitCode, output).toBe(0);
    expect(output).toContain("+ 11 to create\n"); // the stack, 4 objects; 1 namespace, 1 binding, 2 Pods, 1 row, 1 Deployment
    expect(await rows()).toEqual([]);
    expect((await madeFor(tenant, acme())).size).toBe(0);
  });

  it("makes it", { timeout: TIMEOUT_MS }, async () => {
    const { exitCode, changes, output } = await project.up(stack);

    expect(exitCode, output).toBe(0);
    expect(changes).toEqual({ create: 10 });
    expect(await rows()).toEqual([{ id: `default/${names.row}`, age: 23 }]);
    expect([...(await madeFor(tenant, acme())).keys()].sort()).toEqual([
      `Namespace/${names.tenant}`,
      `RoleBinding/${names.tenant}-admin-rb`,
    ]);
    expect((await madeFor(podSet, pods(2))).size).toBe(2);
    expect([...(await madeFor(memcached, cache)).keys()]).toEqual([`Deployment/${names.mc}`]);
  });

  it("leaves nothing that the garbage collector would delete for want of an owner", async () => {
    const made = [...(await madeFor(podSet, pods(2))).values(), ...(await madeFor(memcached, cache)).values()];

    expect(made).toHaveLength(3);
    for (const { metadata } of made) expect(metadata.ownerReferences).toBeUndefined();
  });

  it("does nothing the second time", { timeout: TIMEOUT_MS }, async () => {
    const before = uidsOf(await madeFor(podSet, pods(2)));

    expect((await project.up(stack)).changes).toEqual({});

    expect(uidsOf(await madeFor(podSet, pods(2)))).toEqual(before);
  });

  it("repairs after a refresh what others did", { timeout: TIMEOUT_MS }, async () => {
    await remove({ ...bindings, metadata: { name: `${names.tenant}-admin-rb`, namespace: names.tenant } });
    await database.query("UPDATE students SET age = 99");

    const refreshed = await project.refresh(stack);
    const { changes } = await project.up(stack);

    expect(refreshed.exitCode, refreshed.output).toBe(0);
    expect(changes).toEqual({ create: 1, update: 1 });
    expect((await madeFor(tenant, acme())).size).toBe(2);
    expect(await rows()).toMatchObject([{ age: 23 }]);
  });

  it("follows the files: changes, and objects that are not in them any more", { timeout: TIMEOUT_MS }, async () => {
    write("workloads", pods(1));
    write("rest", acme({ adminEmail: "b@example.com" }), writer(24));

    const { exitCode, changes, output } = await project.up(stack);

    expect(exitCode, output).toBe(0);
    expect(changes).toEqual({ update: 2, delete: 3 }); // a Pod, the Memcached and its Deployment
    expect(await rows()).toMatchObject([{ age: 24 }]);
    expect((await madeFor(podSet, pods(1))).size).toBe(1);
  });

  it("says which object of which file is wrong, and does nothing", { timeout: TIMEOUT_MS }, async () => {
    write("rest", acme({ adminEmail: "c@example.com" }), writer(-1));

    const { exitCode, changes, output } = await project.up(stack);

    expect(exitCode).toBe(1);
    expect(changes).toEqual({});
    expect(output).toContain(`rest.yaml: PostgresWriter default/${names.row}: spec.age: -1 must be >= 0`);
  });

  it("destroys all of it", { timeout: TIMEOUT_MS }, async () => {
    const { exitCode, changes, output } = await project.destroy(stack);

    expect(exitCode, output).toBe(0);
    expect(changes).toEqual({ delete: 7 }); // 3 objects; 1 namespace, 1 binding, 1 Pod, 1 row
    expect(await rows()).toEqual([]);
    await eventually(async () => expect((await madeFor(podSet, pods(1))).size).toBe(0));
    expect(await find({ apiVersion: "v1", kind: "Namespace", metadata: { name: names.tenant } })).toBeUndefined();
  });
});

describe("the hand-over between pulumi up and the operator", () => {
  beforeAll(() => operator.start());
  afterAll(() => operator.stop());

  const operations = async (kind: AnyKind) => {
    const labels = { kind: `${kind.plural}.${kind.group}` };
    const count = (operation: string) =>
      operator.metric("kindstack_resource_operations_total", { ...labels, operation });
    const [created, deleted, replaced] = await Promise.all(["create", "delete", "replace"].map(count));
    return { created, deleted, replaced };
  };
  const untilReady = (manifest: Manifest, handled?: string) =>
    eventually(async () => {
      const object = await find(manifest);
      const status = object && statusOf(object);
      expect(findCondition(status?.conditions, "Ready")).toMatchObject({
        status: "True",
        observedGeneration: object?.metadata.generation,
      });
      expect(status?.lastHandledReconcile).toBe(handled);
      return object as LiveObject;
    });

  /** The UIDs of a Memcached's Pods, which its Deployment makes, as soon as there are so many. */
  const untilInstances = (instance: string, count: number) =>
    eventually(async () => {
      const labelSelector = `app.kubernetes.io/instance=${instance}`;
      const { items } = await client.list(await client.resourceType("v1", "Pod"), { labelSelector });
      expect(items).toHaveLength(count);
      return items.map(({ metadata }) => metadata.uid).sort();
    });

  const name = uniqueName("handed");
  const cases: [string, AnyKind, Manifest, number][] = [
    [
      "Tenant",
      tenant,
      manifestOf(tenant, name, { adminEmail: "a@example.com", adminGroups: ["x"], namespaces: [name] }),
      2,
    ],
    ["PodSet", podSet, manifestOf(podSet, name, { replicas: 2 }), 2],
    ["Memcached", memcached, manifestOf(memcached, name, { size: 2 }), 1],
    [
      "PostgresWriter",
      postgresWriter,
      manifestOf(postgresWriter, name, { table: "students", name: "alex", age: 23, country: "canada" }),
      1,
    ],
  ];

  it.each(cases)("deletes and creates nothing: %s", { timeout: TIMEOUT_MS }, async (_name, kind, manifest, count) => {
    const stack = stackOf(kind, objectKey(manifest.metadata), undefined);
    const components = kind.capabilities.sharedStacks ? 1 : 0;
    const rowBefore = kind === postgresWriter ? 1 : 0;
    await project.init(stack);
    project.configure(stack, { manifests: write(kind.singular, manifest) });
    const first = await project.up(stack);
    expect(first.exitCode, first.output).toBe(0);
    expect(first.changes).toEqual({ create: count + components });
    const made = uidsOf(await madeFor(kind, manifest));
    const instances = kind === memcached ? await untilInstances(name, 2) : [];
    const before = await operations(kind);

    // pulumi up → operator: the object is applied to the cluster.
    const { metadata } = await apply(manifest);
    await untilReady(manifest);

    expect(await operations(kind)).toEqual(before);
    expect(uidsOf(await madeFor(kind, manifest))).toEqual(made);
    if (kind.owns.length > 0) expect(ownersOf(await madeFor(kind, manifest))).toEqual([metadata.uid]);
    expect(await rows()).toHaveLength(rowBefore);

    // operator → pulumi up: not without a word to the operator …
    const refused = await project.up(stack);
    expect(refused.exitCode).toBe(1);
    expect(refused.output).toContain(`${PAUSED_ANNOTATION}=true`);
    // … but then, and the object can go.
    await edit(manifest, { metadata: { annotations: { [PAUSED_ANNOTATION]: "true" } } });
    const taken = await project.up(stack);
    expect(taken.exitCode, taken.output).toBe(0);
    expect(taken.changes).toEqual({ update: count });

    // And back to the operator, which is asked to look.
    await edit(manifest, { metadata: { annotations: { [PAUSED_ANNOTATION]: null, [RECONCILE_ANNOTATION]: "back" } } });
    await untilReady(manifest, "back");

    expect(await operations(kind)).toEqual(before);
    expect(uidsOf(await madeFor(kind, manifest))).toEqual(made);
    if (kind.owns.length > 0) expect(ownersOf(await madeFor(kind, manifest))).toEqual([metadata.uid]);

    // To pulumi up for good: the object leaves the cluster, what it stands for stays.
    await edit(manifest, { metadata: { annotations: { [PAUSED_ANNOTATION]: "true" } } });
    expect((await project.up(stack)).changes).toEqual({ update: count });
    await edit(manifest, { metadata: { finalizers: null } });
    await remove(manifest);
    await eventually(async () => expect(await find(manifest)).toBeUndefined());

    expect(uidsOf(await madeFor(kind, manifest))).toEqual(made);
    if (kind === memcached) expect(await untilInstances(name, 2)).toEqual(instances);
    expect(await rows()).toHaveLength(rowBefore);
    expect(await operations(kind)).toEqual(before);
    const destroyed = await project.destroy(stack);
    expect(destroyed.changes, destroyed.output).toEqual({ delete: count + components });
  });
});
