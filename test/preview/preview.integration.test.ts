import { spawn } from "node:child_process";
import { hash } from "node:crypto";
import { once } from "node:events";
import { chmod, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { hostname } from "node:os";
import { join } from "node:path";
import { KubeConfig } from "@kubernetes/client-node";
import { Check } from "typebox/value";
import { beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { stringify } from "yaml";
import { KubernetesClient, type Manifest } from "../../providers/kubernetes/client";
import { runCommand } from "../../src/cli/program";
import { installKinds } from "../../src/operator/install";
import { ClusterView } from "../../src/preview/cluster-view";
import { preview, selectCandidates } from "../../src/preview/preview";
import { type Report, reportSchema } from "../../src/preview/report";
import type { AnyKind } from "../../stacks/contract/kind";
import { findKind, kindOf } from "../../stacks/contract/kind-name";
import { objectKey, stackName } from "../../stacks/contract/object";
import { kinds } from "../../stacks/kinds/index";
import { captureOutput } from "../captured-output";
import { NAMESPACE, TestCluster } from "../providers/kubernetes/test-cluster";
import { useDatabase } from "../providers/postgres/database";
import { makeObject, openTestEngine } from "./engine";

const database = useDatabase();
const cluster = TestCluster.use();
let directory: string;
let stacks: Awaited<ReturnType<typeof openTestEngine>>;
let table: string;
let otherTable: string;

beforeAll(async () => {
  await installKinds(cluster.client, kinds);
  [table, otherTable] = [await database.createStudents(), await database.createStudents()];
  stacks = await openTestEngine({ previewsAtOnce: 4 });
  directory = stacks.directory;
  for (const name of ["same", "changed", "moved", "gone"]) await make(writer(name));
  await make(tenant({ namespaces: [`${cluster.namespace}-a`, `${cluster.namespace}-b`] }));
  await make(podSet(2));
  return async () => {
    await stacks.close();
    for (const kind of kinds) {
      const type = await cluster.client.resourceType(`${kind.group}/${kind.version}`, kind.kind);
      for (const { metadata } of (await cluster.client.list(type)).items) {
        await cluster.client.delete(type, metadata.name, metadata.namespace);
      }
    }
    for (const suffix of ["a", "b"]) await cluster.client.delete(NAMESPACE, `${cluster.namespace}-${suffix}`);
  };
});

type Named = Manifest & { metadata: { name: string } };

function writer(name: string, spec: object = {}, metadata: object = {}): Named {
  return {
    apiVersion: "demo.yash.com/v1",
    kind: "PostgresWriter",
    metadata: { name, namespace: cluster.namespace, ...metadata },
    spec: { table, name: "alex", age: 23, country: "canada", ...spec },
  };
}

function tenant(spec: object, name = cluster.namespace): Named {
  return {
    apiVersion: "multitenancy.codereliant.io/v1",
    kind: "Tenant",
    metadata: { name },
    spec: { adminEmail: "admin@example.com", adminGroups: ["admins"], namespaces: [], ...spec },
  };
}

function podSet(replicas?: number): Named {
  return {
    apiVersion: "batch.tutorial.kubebuilder.io/v1",
    kind: "PodSet",
    metadata: { name: "pods", namespace: cluster.namespace },
    spec: { ...(replicas !== undefined && { replicas }) },
  };
}

const make = (manifest: Named) =>
  makeObject(stacks.engine, cluster.client, kindOf(kinds, manifest) as AnyKind, manifest);

interface Look {
  client?: KubernetesClient;
  refresh?: boolean;
  before?: Named[];
}

/** Previews manifests as if they were in a file. */
async function look(manifests: Named[], { client, refresh = false, before = [] }: Look = {}): Promise<Report> {
  const view = await ClusterView.open(client ?? cluster.client);
  const sourced = (objects: Named[]) => ({
    objects: objects.map((manifest) => ({ manifest, file: "objects.yaml" })),
    problems: [],
  });
  const selection = selectCandidates(kinds, "default", sourced(manifests), sourced(before));
  return preview({ engine: stacks.engine, cluster: view, refresh }, selection);
}

function kubeConfigOf(server: string): KubeConfig {
  const config = new KubeConfig();
  config.loadFromClusterAndUser({ name: "none", server, skipTLSVerify: false }, { name: "any" });
  return config;
}

/** A client of a cluster that does not answer. */
const unreachable = () => new KubernetesClient(kubeConfigOf("http://127.0.0.1:1"));

const plansOf = ({ objects }: Report) =>
  objects.map(({ name, action, resources }) => ({
    name,
    action,
    resources: resources.map(({ operation, type, fields }) => [operation, type, ...fields]),
  }));

describe("a preview", () => {
  it("says what would happen to each object: create, update, replace, delete, nothing, refused", async () => {
    const changed = writer("changed", { age: 24, country: "chile" });
    const files = [writer("new"), changed, writer("moved", { table: otherTable }), writer("same")];
    const report = await look([...files, writer("invalid", { age: -1 })], { before: [writer("gone")] });

    const fieldsOfNew = [
      { path: "key.id", after: `${cluster.namespace}/new` },
      { path: "table", after: table },
      { path: "values.age", after: 23 },
      { path: "values.country", after: "canada" },
      { path: "values.name", after: "alex" },
    ];
    const fieldsOfChanged = [
      { path: "values.age", before: 23, after: 24 },
      { path: "values.country", before: "canada", after: "chile" },
    ];
    const moved = { path: "table", before: table, after: otherTable };
    expect(plansOf(report)).toEqual([
      { name: "new", action: "create", resources: [["create", "Row", ...fieldsOfNew]] },
      { name: "changed", action: "update", resources: [["update", "Row", ...fieldsOfChanged]] },
      { name: "moved", action: "replace", resources: [["replace", "Row", moved]] },
      { name: "same", action: "none", resources: [] },
      { name: "invalid", action: "invalid", resources: [] },
      { name: "gone", action: "delete", resources: [["delete", "Row"]] },
    ]);
    expect(report.objects.find(({ name }) => name === "invalid")?.errors).toEqual(["spec.age: -1 must be >= 0"]);
    expect(report.objects.find(({ name }) => name === "same")?.validatedBy).toBe("server");
  });

  it("shows the deletion of a namespace that a tenant no longer lists", async () => {
    const report = await look([tenant({ namespaces: [`${cluster.namespace}-a`], adminEmail: "new@example.com" })]);

    const [plan] = report.objects;
    expect(plan?.action).toBe("update");
    expect(plan?.resources.map(({ operation, name }) => `${operation} ${name}`).sort()).toEqual([
      `delete namespace/${cluster.namespace}-b`,
      `delete rolebinding/${cluster.namespace}-b/admin`,
      `update namespace/${cluster.namespace}-a`,
    ]);
    expect(plan?.resources.flatMap(({ fields }) => fields)).toEqual([
      { path: "metadata.annotations.adminEmail", before: "admin@example.com", after: "new@example.com" },
    ]);
  });

  it("fills in the schema's defaults, and keeps what lives", async () => {
    expect(plansOf(await look([podSet(2)]))).toEqual([{ name: "pods", action: "none", resources: [] }]);
    const shrunk = { name: "pods", action: "update", resources: [["delete", "Pod"]] };
    expect(plansOf(await look([podSet()]))).toEqual([shrunk]);
  });

  it("asks the API server for what only that can refuse", async () => {
    const labelled = podSet(1);
    labelled.metadata.labels = { "no label": "at all" };
    const errors = [expect.stringContaining('"no label"')];
    expect((await look([labelled])).objects).toMatchObject([{ action: "invalid", validatedBy: "server", errors }]);
    const offline = { action: "unchecked", resources: [{ operation: "unchecked", type: "Pod" }] };
    expect((await look([labelled], { client: unreachable() })).objects).toMatchObject([offline]);
  });

  const longName = () => ({ ...podSet(1), metadata: { name: "p".repeat(64), namespace: "default" } });
  it.each<[string, () => Named, string]>([
    ["a rule over the whole object", longName, "at most 63"],
    ["a rule over an item", () => tenant({ namespaces: ["kube-system"] }), "cannot belong to a tenant"],
    ["a list of unique items", () => tenant({ adminGroups: ["a", "a"] }), "adminGroups"],
  ])("refuses by %s what the API server would refuse, without asking it", async (_, manifest, text) => {
    const verdict = await (await ClusterView.open(cluster.client)).validate(manifest());
    const [plan] = (await look([manifest()], { client: unreachable() })).objects;

    const message = expect.stringContaining(text);
    expect(verdict).toMatchObject({ type: "invalid", message });
    expect(plan).toMatchObject({ action: "invalid", validatedBy: "schema", errors: [message] });
  });

  it("has the same changes by the state alone when no cluster answers, and is not sure of any object", async () => {
    const files = [writer("changed", { age: 24 }), writer("same"), podSet(2)];
    const fewer = tenant({ namespaces: [`${cluster.namespace}-a`] });
    const report = await look([...files, fewer], { client: unreachable() });
    const unsure = { action: "unchecked", validatedBy: "schema" };
    expect(report.objects).toMatchObject([unsure, unsure, unsure, unsure]);
    expect(plansOf(report).map(({ resources }) => resources)).toEqual([
      [["update", "Row", { path: "values.age", before: 23, after: 24 }]],
      [],
      [],
      [expect.arrayContaining(["unchecked", "Namespace"]), expect.arrayContaining(["unchecked", "RoleBinding"])],
    ]);
  });

  it("shows what has drifted when it is asked to compare with the real world", async () => {
    const drifting = writer("drifting");
    await make(drifting);
    await database.query(`UPDATE ${table} SET age = 99 WHERE id = '${cluster.namespace}/drifting'`);

    expect(plansOf(await look([drifting]))).toEqual([{ name: "drifting", action: "none", resources: [] }]);
    const resources = [["update", "Row", { path: "values.age", before: "99", after: 23 }]];
    const refreshed = plansOf(await look([drifting], { refresh: true }));
    expect(refreshed).toEqual([{ name: "drifting", action: "update", resources }]);
  });

  it("shows what would be refused because another client has it, or wants it too", async () => {
    const named = (suffix: string) => `${cluster.namespace}-${suffix}`;
    const [a, b, free] = [named("a"), named("b"), named("free")];
    const report = await look([
      tenant({ namespaces: [a] }), // releases b
      tenant({ namespaces: [b] }, "heir"),
      tenant({ namespaces: [a] }, "intruder"),
      tenant({ namespaces: [free] }, "one"),
      tenant({ namespaces: [free] }, "other"),
    ]);

    const holder = `Tenant.multitenancy.codereliant.io/${cluster.namespace}`;
    expect(report.objects.map(({ name, action }) => `${action} ${name}`)).toEqual([
      `update ${cluster.namespace}`,
      "create heir",
      "failed intruder",
      "failed one",
      "failed other",
    ]);
    const [, heir, intruder, one, other] = report.objects;
    expect(heir?.notes).toContainEqual(expect.stringMatching(`waits until .*Namespace ${b} belongs to ${holder}`));
    expect(intruder?.errors).toContainEqual(expect.stringContaining(`Conflict: Namespace ${a} belongs to ${holder}`));
    const claimed = `Conflict: v1/Namespace//${free} is also Tenant.multitenancy.codereliant.io/other's`;
    expect(one?.errors[0]).toMatch(claimed);
    expect(other?.errors[0]).toContain("codereliant.io/one's");
  });

  it("shows a row that another object has, or that no one made for Kindstack", async () => {
    const key = (name: string) => `${cluster.namespace}/${name}`;
    await database.query(`INSERT INTO ${otherTable} (id, name) VALUES ($1, 'theirs')`, [key("found")]);
    await database.query(
      `WITH known AS (
         INSERT INTO kindstack_ownership.tables (server, oid, table_schema, table_name)
         VALUES ('', 0, 'public', '${otherTable}') RETURNING id
       )
       INSERT INTO kindstack_ownership.records (table_id, key, owner, description, incarnation)
       SELECT id, $1, 'uid', 'PostgresWriter.demo.yash.com/else/where', 'i' FROM known`,
      [key("same")],
    );

    const report = await look([writer("found", { table: otherTable }), writer("same", { table: otherTable })]);
    await database.query(`DELETE FROM ${otherTable}`);
    await database.query("DELETE FROM kindstack_ownership.records WHERE incarnation = 'i'");

    const conflict = (words: RegExp) => ({ action: "failed", errors: [expect.stringMatching(words)] });
    expect(report.objects).toMatchObject([
      conflict(/^RowConflict: row ".*found" .* belongs to no object/),
      conflict(/^RowConflict: row ".*same" .*belongs to .*else\/where/),
    ]);
  });

  it("says where it could not look for what another client has", async () => {
    const report = await look([tenant({ namespaces: ["any"] }, "new")], { client: cluster.as("stranger") });

    const unseen = { operation: "unchecked" };
    expect(report.objects).toMatchObject([{ action: "unchecked", resources: [unseen, unseen] }]);
    const why = /^namespace\/any could not be looked up: .*"stranger" cannot get resource "namespaces"/m;
    expect(report.objects[0]?.errors.join("\n")).toMatch(why);
    expect(report.unchecked.join("\n")).toMatch(/^what other objects of tenants.* could not be looked up/);
  });

  it("calls a renamed object what it is: another one", async () => {
    const report = await look([writer("renamed")], { before: [writer("gone")] });
    expect(report.objects).toMatchObject([
      { name: "renamed", action: "create", notes: [expect.stringContaining("from gone")] },
      { name: "gone", action: "delete", notes: [expect.stringContaining("to renamed")] },
    ]);
  });

  it("knows what is kept when an object goes that says so", async () => {
    const orphan = writer("gone", {}, { annotations: { "kindstack.dev/deletion-policy": "Orphan" } });
    const report = await look([], { client: unreachable(), before: [orphan] });
    expect(plansOf(report)).toEqual([{ name: "gone", action: "unchecked", resources: [["orphan", "Row"]] }]);
    expect(plansOf(await look([], { before: [orphan] }))).toEqual([
      { name: "gone", action: "delete", resources: [["delete", "Row"]] }, // what the cluster has counts
    ]);
  });

  it("changes nothing at all, and needs no right to write the state", async () => {
    const before = await everything();
    await chmodAll(join(directory, "state"), { writable: false });
    const rows = [writer("new"), writer("changed", { age: 24 }), writer("moved", { table: otherTable })];
    const files = [...rows, tenant({ namespaces: [`${cluster.namespace}-c`] }), podSet(5)];
    const report = await look(files, { refresh: true, before: [writer("gone")] });
    await chmodAll(join(directory, "state"), { writable: true });

    expect(report.objects.flatMap(({ errors }) => errors)).toEqual([]);
    const actions = report.objects.map(({ action }) => action).join();
    expect(actions).toBe("create,update,replace,update,update,delete");
    expect(await everything()).toEqual(before);
    expect(Object.keys(before.state).filter((file) => file.includes("/locks/"))).toEqual([]);
  });

  it("waits for no lock, nor takes one: an update of the same stack may be at work", async () => {
    const stack = stackName(findKind(kinds, "postgreswriter"), `${cluster.namespace}/changed`);
    const locks = join(directory, "state", ".pulumi", "locks", "organization", "kindstack", stack);
    await mkdir(locks, { recursive: true });
    const lock = { pid: process.pid, username: "somebody", hostname: hostname(), timestamp: new Date().toISOString() };
    await writeFile(join(locks, "an-update.json"), JSON.stringify(lock));

    const report = await look([writer("changed", { age: 24 })]);
    const files = await readdir(locks);
    await rm(join(locks, "an-update.json"));

    expect(report.objects).toMatchObject([{ action: "update", errors: [] }]);
    expect(files).toEqual(["an-update.json"]);
  });

  it.each([
    ["the object", "PostgresWriter"],
    ["its namespace", "Namespace"],
  ])("tells what the mode of %s makes of the changes", async (_, annotated) => {
    const isOwn = annotated === "PostgresWriter";
    const [type, name] = isOwn
      ? ([await cluster.client.resourceType("demo.yash.com/v1", annotated), "gone"] as const)
      : ([NAMESPACE, cluster.namespace] as const);
    const setMode = async (mode: string | null) => {
      const annotations = { "kindstack.dev/mode": mode };
      await cluster.client.mergePatch(type, name, isOwn ? cluster.namespace : undefined, { metadata: { annotations } });
    };
    await setMode("observe");
    const updated = await look([writer("gone", { age: 24 })]);
    const removed = await look([], { before: [writer("gone")] });
    await setMode(null);
    const notes = ["mode Observe: nothing is written; the changes are those of another mode"];
    expect(updated.objects).toMatchObject([{ action: "update", notes }]);
    expect(removed.objects).toMatchObject([{ action: "orphan", notes }]);
  });
});

describe("the commands", () => {
  let output: { stdout: string; stderr: string };

  beforeEach(() => {
    output = captureOutput();
    return () => vi.restoreAllMocks();
  });

  const run = (...words: string[]) => {
    database.use({ PULUMI_BACKEND_URL: stacks.stateUrl, PULUMI_CONFIG_PASSPHRASE: "the-passphrase" });
    vi.stubEnv("PULUMI_CONFIG_PASSPHRASE_FILE", undefined);
    return runCommand(words);
  };

  it("print a report, and let it be a gate", async () => {
    const file = join(directory, "moved.yaml");
    await writeFile(file, stringify(writer("moved", { table: otherTable })));

    expect(await run("preview", "-f", file, "--output", "json", "--fail-on", "delete")).toBe(0);
    const report = JSON.parse(output.stdout);
    expect(Check(reportSchema, report)).toBe(true);
    expect(report).toMatchObject({ summary: { replace: 1 }, objects: [{ file, action: "replace" }], notes: [] });

    expect(await run("preview", "-f", file, "--fail-on", "replace,delete")).toBe(1);
    expect(output.stderr).toContain("--fail-on replace,delete: PostgresWriter");
  });

  it("say that one object hands over to another what it adopted, and let that be a gate", async () => {
    const name = `${cluster.namespace}-handed`;
    await cluster.client.create({ apiVersion: "v1", kind: "Namespace", metadata: { name } });
    await make(tenant({ namespaces: [name] }, `${cluster.namespace}-giver`));
    const file = join(directory, "handed.yaml");
    const changed = [tenant({}, `${cluster.namespace}-giver`), tenant({ namespaces: [name] }, "heir")];
    await writeFile(file, changed.map((object) => stringify(object)).join("---\n"));

    expect(await run("preview", "-f", file, "--output", "json", "--fail-on", "hand-over")).toBe(1);
    expect(output.stderr).toContain("--fail-on hand-over: Tenant heir");
    const { objects } = JSON.parse(output.stdout) as Report;
    expect(objects.map(({ action, resources }) => [action, resources.map(({ operation }) => operation)])).toEqual([
      ["update", expect.arrayContaining(["release"])],
      ["create", ["hand-over", "create"]],
    ]);
    output.stdout = "";
    expect(await run("preview", "-f", file, "--fail-on", "adopt,move,replace,orphan")).toBe(0);
    expect(output.stdout).toContain("1 to hand over");
    expect(output.stdout).toContain(`⇄ hand-over Namespace namespace/${name}`);
  });

  it("say that an object is paused, by its file or in the cluster, with what happens when the pause ends", async () => {
    const file = join(directory, "paused.yaml");
    const annotations = { "kindstack.dev/paused": "true" };
    const paused = writer("gone", { age: 24 }, { annotations });
    await writeFile(file, stringify(paused));

    expect(await run("preview", "-f", file, "--fail-on", "delete,replace")).toBe(0);
    expect(output.stdout).toMatch(/PostgresWriter +\S+\/gone +paused +1 to update/i);
    expect(output.stdout).toContain("no update until the annotation kindstack.dev/paused is removed");
    expect(output.stdout).toMatch(/\n1 paused\n$/);
    // What a pause holds back is done without another look at it.
    expect(await run("preview", "-f", file, "--fail-on", "update")).toBe(1);

    output.stdout = "";
    await cluster.applyAs("someone", { ...writer("gone"), metadata: paused.metadata, spec: undefined });
    await writeFile(file, stringify(writer("gone", { age: 24 })));
    expect(await run("preview", "-f", file, "--output", "json")).toBe(0);
    const type = await cluster.client.resourceType("demo.yash.com/v1", "PostgresWriter");
    await cluster.client.mergePatch(type, "gone", cluster.namespace, { metadata: { annotations: null } });
    expect(JSON.parse(output.stdout)).toMatchObject({ summary: { paused: 1 }, objects: [{ action: "paused" }] });
  });

  it("end by SIGTERM, while they read or wait for a cluster", async () => {
    const main = join(__dirname, "../../dist/src/cli/main.js");
    const file = join(directory, "waiting.yaml");
    await writeFile(file, stringify(writer("same")));
    const silent = createServer(() => {});
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    const { port } = silent.address() as AddressInfo;
    const kubeconfig = join(directory, "silent.json");
    await writeFile(kubeconfig, kubeConfigOf(`https://127.0.0.1:${port}`).exportConfig());
    const state = { PULUMI_BACKEND_URL: stacks.stateUrl, PULUMI_CONFIG_PASSPHRASE: "x" };
    const env = { ...process.env, KUBECONFIG: kubeconfig, ...state };

    const reads = spawn(process.execPath, [main, "preview", "-f", "-"], { env });
    const readsEnd = once(reads, "exit");
    reads.kill("SIGTERM");
    expect(await readsEnd).toEqual([null, "SIGTERM"]);

    const waits = spawn(process.execPath, [main, "preview", "-f", file], { env });
    const waitsEnd = once(waits, "exit");
    await Promise.race([once(silent, "connection"), waitsEnd]);
    waits.kill("SIGTERM");
    expect(await waitsEnd).toEqual([1, null]);
    silent.close();
  });

  it("compare what is in the cluster with its state", async () => {
    expect(await run("diff", "postgreswriter", "same", "-n", cluster.namespace)).toBe(0);
    expect(output.stdout).toContain("1 unchanged");
    expect(await run("diff", "--all", "--output", "json")).toBe(0);
    expect(JSON.parse(output.stdout.slice(output.stdout.indexOf("{"))).objects.length).toBeGreaterThan(5);
  });

  it("tell what an object has, and what was done to it, as a table or as JSON", async () => {
    const printed = async (...words: string[]) => {
      output.stdout = "";
      expect(await run(...words, "postgreswriters.demo.yash.com", "same", "-n", cluster.namespace)).toBe(0);
      return output.stdout;
    };
    const table = /^STARTED +TOOK +OPERATION +RESULT +CHANGES\n\S+ +[\d.]+ s +update +succeeded/;
    expect(await printed("history")).toMatch(table);
    const [row] = JSON.parse(await printed("outputs", "-o", "json"));
    expect(row).toMatchObject({ type: "Row", outputs: { values: { age: 23 } } });
    expect(row.outputs).not.toHaveProperty("incarnation");
    expect(await printed("outputs")).toContain('values={"age":23');
    const [update] = JSON.parse(await printed("history", "--output", "json"));
    expect(update).toMatchObject({ kind: "update", result: "succeeded" });
    const state = JSON.parse(await printed("state", "export"));
    expect(state).toMatchObject({ version: 3, deployment: { resources: expect.any(Array) } });
  });

  it("say that there is none", async () => {
    expect(await run("history", "tenant.multitenancy", "missing")).toBe(1);
    expect(output.stderr).toMatch(/Tenant missing has no stack \(tenant\.missing-/);
  });
});

/** All that a preview could have changed. */
async function everything() {
  const objects: string[] = [];
  const types = [
    ...kinds.map(({ group, version, kind }) => [`${group}/${version}`, kind] as const),
    ["v1", "Namespace"] as const,
    ["v1", "Pod"] as const,
    ["rbac.authorization.k8s.io/v1", "RoleBinding"] as const,
  ];
  for (const [apiVersion, kind] of types) {
    const { items } = await cluster.client.list(await cluster.client.resourceType(apiVersion, kind));
    for (const { metadata } of items) {
      if (metadata.name.startsWith(cluster.namespace) || metadata.namespace?.startsWith(cluster.namespace)) {
        // What the control plane itself writes to a Pod, as it starts, does not count here.
        objects.push(`${kind} ${objectKey(metadata)} ${kind === "Pod" ? metadata.uid : metadata.resourceVersion}`);
      }
    }
  }
  const rows = await Promise.all(
    [table, otherTable, "kindstack_ownership.records"].map((name) => database.query(`TABLE ${name}`)),
  );
  return { objects, rows, state: await checksum(join(directory, "state")) };
}

async function checksum(root: string): Promise<Record<string, string>> {
  const entries = await readdir(root, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const sums = files.sort().map(async (file) => [file, hash("sha256", await readFile(file))]);
  return Object.fromEntries(await Promise.all(sums));
}

async function chmodAll(root: string, { writable }: { writable: boolean }): Promise<void> {
  for (const entry of await readdir(root, { recursive: true, withFileTypes: true })) {
    await chmod(join(entry.parentPath, entry.name), (entry.isDirectory() ? 0o500 : 0o400) | (writable ? 0o200 : 0));
  }
  await chmod(root, writable ? 0o700 : 0o500);
}
