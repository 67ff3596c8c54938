import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { execa } from "execa";
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { stringify } from "yaml";
import type { Manifest } from "../../providers/kubernetes/client";
import { disconnectKubernetes } from "../../providers/kubernetes/connection";
import type { GoEngine } from "../../src/automation/go-engine";
import { runCommand } from "../../src/cli/program";
import { installKinds } from "../../src/operator/install";
import type { Report } from "../../src/preview/report";
import { eventually } from "../../src/testing/eventually";
import { stackName } from "../../stacks/contract/object";
import { kinds } from "../../stacks/kinds/index";
import { postgresWriter } from "../../stacks/kinds/postgres-writer/kind";
import { openEngineIn } from "../automation/engine-in";
import { captureOutput } from "../captured-output";
import { controlPlane } from "../control-plane";
import { testDirectory, useDirectory } from "../directories";
import { TestCluster } from "../providers/kubernetes/test-cluster";
import { useDatabase } from "../providers/postgres/database";
import { makeObject } from "./engine";

/*
 * The command, as a gate of a repository: what it could not look up, or knows to fail, it does not let pass as a creation, a
 * deletion or as nothing.
 */

const database = useDatabase();
const cluster = TestCluster.use();
const directory = useDirectory();
let repository: string;
let table: string;
const PASSPHRASE = { PULUMI_CONFIG_PASSPHRASE: "the-passphrase" };
const backend = (name: string) => pathToFileURL(join(directory, name)).href;

beforeAll(async () => {
  await installKinds(cluster.client, kinds);
  // An API server that has just got definitions may not list their objects yet.
  await eventually(async () => {
    for (const { group, version, kind } of kinds)
      await cluster.client.list({ apiVersion: `${group}/${version}`, kind });
  });
  table = await database.createStudents();
  for (const name of ["state", "empty"]) mkdirSync(join(directory, name, ".pulumi"), { recursive: true });
  const { engine, processes } = await openEngineIn(directory);
  for (const name of ["kept", "gone"]) await make(engine, name);
  await processes.close();
  return async () => {
    for (const name of ["kept", "gone"]) await cluster.client.delete(WRITER, name, cluster.namespace);
  };
});

const WRITER = { apiVersion: "demo.yash.com/v1", kind: "PostgresWriter" };

function writer(name: string, spec: object = {}, metadata: object = {}) {
  return {
    ...WRITER,
    metadata: { name, namespace: cluster.namespace, ...metadata },
    spec: { table, name: "alex", age: 23, country: "canada", ...spec },
  };
}

const tenant = (name: string, spec: object) => ({
  ...{ apiVersion: "multitenancy.codereliant.io/v1", kind: "Tenant" },
  metadata: { name: `${cluster.namespace}-${name}` },
  spec: { adminEmail: "a@example.com", adminGroups: [], namespaces: [], ...spec },
});

/** What the operator would do: an update of the object's stack, which its status then names. */
async function make(engine: GoEngine, name: string): Promise<void> {
  await makeObject(engine, cluster.client, postgresWriter, writer(name));
  const path = `/apis/demo.yash.com/v1/namespaces/${cluster.namespace}/postgreswriters/${name}/status`;
  const stack = stackName(postgresWriter, `${cluster.namespace}/${name}`);
  const body = { status: { stack: { name: stack, program: "p" } } };
  await cluster.client.json("PATCH", path, { body, contentType: "application/merge-patch+json" });
}

let output: { stdout: string; stderr: string };

beforeEach(async () => {
  repository = testDirectory();
  await git("init", "-q", "-b", "main");
  output = captureOutput();
  vi.spyOn(process, "cwd").mockReturnValue(repository);
});
afterEach(async () => {
  vi.restoreAllMocks();
  await disconnectKubernetes();
});

const git = (...words: string[]) =>
  execa("git", ["-C", repository, "-c", "user.name=a", "-c", "user.email=a@example.com", ...words]);

/** Writes files of the repository; a text is written as it is. */
function write(files: Record<string, string | object[]>): void {
  mkdirSync(join(repository, "manifests"), { recursive: true });
  for (const [file, content] of Object.entries(files)) {
    const text = typeof content === "string" ? content : content.map((object) => stringify(object)).join("---\n");
    writeFileSync(join(repository, "manifests", file), text);
  }
}

async function commit(message = "commit"): Promise<void> {
  await git("add", "-A");
  await git("commit", "-qm", message);
}

/** Runs `kindstack preview` as a gate. @returns its exit code and its report */
async function gate(words: string[] = [], env: Record<string, string | undefined> = {}) {
  output.stdout = "";
  database.use({ PULUMI_BACKEND_URL: backend("state"), ...PASSPHRASE, ...env });
  vi.stubEnv("PULUMI_CONFIG_PASSPHRASE_FILE", undefined);
  const kubeconfig = env.KUBECONFIG ?? controlPlane().kubeconfig;
  vi.stubEnv("KUBECONFIG", kubeconfig);
  const files = ["-f", join(repository, "manifests")];
  const code = await runCommand(["preview", ...files, "-o", "json", "--fail-on", "replace", ...words]);
  const report = JSON.parse(output.stdout || "{}") as Report;
  const objects = Object.fromEntries((report.objects ?? []).map((plan) => [plan.name, plan]));
  return { code, report, objects };
}

const actionsOf = ({ objects = [] }: Report) => objects.map(({ name, action }) => `${action} ${name}`).sort();

it("a gate without the state fails for each object whose status names a stack: kept, or removed by the change", async () => {
  write({ "a.yaml": [writer("kept")], "b.yaml": [writer("gone")] });
  await commit();
  await git("rm", "-q", "manifests/b.yaml");

  const right = await gate(["--prune-against", "main"]);
  expect(actionsOf(right.report)).toEqual(["delete gone", "none kept"]);
  expect(right.code).toBe(0);

  const wrong = await gate(["--prune-against", "main"], { PULUMI_BACKEND_URL: backend("empty") });
  expect(actionsOf(wrong.report)).toEqual(["unchecked gone", "unchecked kept"]);
  expect(wrong.objects.gone?.errors).toEqual([expect.stringMatching(/names a stack .* PULUMI_BACKEND_URL right\?$/)]);
  expect(wrong.code).toBe(1);
  expect(output.stderr).toContain("PostgresWriter");
});

it("a gate without the cluster is sure of no object, and shows what the state knows", async () => {
  write({ "a.yaml": [writer("kept", { age: 24 }), writer("new")] });
  await commit();
  const missing = join(directory, "no-such-kubeconfig");
  const { code, report, objects } = await gate([], { KUBECONFIG: missing });

  expect(actionsOf(report)).toEqual(["unchecked kept", "unchecked new"]);
  expect(objects.kept?.resources).toMatchObject([{ operation: "update", fields: [{ path: "values.age" }] }]);
  expect(code).toBe(1);
});

it.each([
  ["that does not answer", { PSQL_PORT: "1" }],
  ["that does not let it in", { PSQL_USER: "nobody-knows", PSQL_PASSWORD: "wrong" }],
])("a gate without the database %s fails for the rows whose owners it would be asked for", async (_, env) => {
  write({ "a.yaml": [writer("kept"), writer("new"), writer("gone", { age: 99 })] });
  const { code, report, objects } = await gate([], env);

  expect(actionsOf(report)).toEqual(["none kept", "unchecked gone", "unchecked new"]);
  expect(objects.new?.resources).toMatchObject([{ operation: "unchecked", type: "Row" }]);
  expect(code).toBe(1);
  expect((await gate(["--fail-on", "unchecked"], env)).code).toBe(1);
});

describe("what cannot work fails", () => {
  it.each<[string, () => object, RegExp]>([
    ["a table that does not exist", () => writer("new", { table: "missing" }), /^TableMissing: relation "missing"/],
    ["a schema that does not exist", () => writer("new", { table: "missing.students" }), /"missing.students"/],
    [
      "a namespace that does not exist",
      () => writer("new", {}, { namespace: "missing" }),
      /^the namespace missing does/,
    ],
  ])("for %s", async (_, manifest, message) => {
    write({ "a.yaml": [manifest()] });
    const { code, report, objects } = await gate(["--propose"]);

    expect(actionsOf(report)).toEqual(["failed new"]);
    expect(objects.new?.errors).toContainEqual(expect.stringMatching(message));
    expect(objects.new?.digest).toBeUndefined();
    expect(code).toBe(1);
  });

  it("for an update of a row whose table has lost a column", async () => {
    const narrow = await database.createStudents("id text PRIMARY KEY, name text, age integer");
    write({ "a.yaml": [writer("new", { table: narrow })] });
    const { objects } = await gate();
    const error = `ColumnMissing: column "country" of relation "${narrow}" does not exist`;
    expect(objects.new).toMatchObject({ action: "failed", errors: [error] });
  });

  it("not for a namespace that the same change makes, in a file or by another object", async () => {
    const [made, given] = [`${cluster.namespace}-made`, `${cluster.namespace}-given`];
    const namespace = { apiVersion: "v1", kind: "Namespace", metadata: { name: given } };
    const writers = [writer("one", {}, { namespace: made }), writer("two", {}, { namespace: given })];
    write({ "a.yaml": [tenant("t", { namespaces: [made] }), namespace, ...writers] });
    const { code, objects } = await gate();
    expect([objects.one?.action, objects.two?.action, code]).toEqual(["create", "create", 0]);
    expect(objects.two?.notValidated).toBe(`its namespace ${given} is made by the same change`);
  });

  it("for a kind that a group of the kinds does not have, and not for one that another operator has in it", async () => {
    const misspelt = { ...writer("new"), kind: "PostgresWriters" };
    write({ "a.yaml": [misspelt] });
    const { code, report } = await gate();
    const message = expect.stringMatching(/no kind PostgresWriters in the group demo\.yash\.com.*PostgresWriter/);
    expect(report.problems).toEqual([{ file: join(repository, "manifests/a.yaml"), message }]);
    expect(code).toBe(1);

    const type = { apiVersion: "apiextensions.k8s.io/v1", kind: "CustomResourceDefinition" };
    const schema = { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } };
    const versions = [{ name: "v1", served: true, storage: true, schema }];
    const names = { kind: "Other", plural: "others" };
    const spec = { group: "demo.yash.com", scope: "Namespaced", names, versions };
    const definition = { ...type, metadata: { name: "others.demo.yash.com" }, spec };
    const other = { ...writer("new"), kind: "Other" };
    write({ "a.yaml": [other, definition] });
    expect(await gate()).toMatchObject({ code: 0, report: { ignored: 2, problems: [] } });
  });
});

describe("what a file hides is not deleted", () => {
  const invalid = () => writer("gone", {}, { annotations: { "example.com/x": 5 } });

  it("where the API server refuses a value of its metadata: the object is invalid", async () => {
    write({ "rows.yaml": [writer("kept"), writer("gone")] });
    await commit();
    write({ "rows.yaml": [writer("kept"), invalid()] });
    const { code, report, objects } = await gate(["--prune-against", "main"]);

    expect(actionsOf(report)).toEqual(["invalid gone", "none kept"]);
    expect(objects.gone?.errors).toEqual(['metadata.annotations["example.com/x"]: must be string']);
    expect(report.problems).toEqual([]);
    expect(code).toBe(1);
  });

  it("where labels say what is pruned", async () => {
    const labels = { pruned: cluster.namespace };
    for (const name of ["kept", "gone"]) await cluster.applyAs("kubectl", writer(name, {}, { labels }) as Manifest);
    const selector = ["--prune-selector", `pruned=${cluster.namespace}`];
    write({ "a.yaml": [writer("kept", {}, { labels })] });
    expect(actionsOf((await gate(selector)).report)).toEqual(["delete gone", "none kept"]);
    write({ "b.yaml": [invalid()] });
    expect(actionsOf((await gate(selector)).report)).toEqual(["invalid gone", "none kept"]);
    write({ "b.yaml": "a: [\n" });
    expect(actionsOf((await gate(selector)).report)).toEqual(["none kept", "unchecked gone"]);
  });

  it("and is deleted where it was invalid before, and is in no file any more", async () => {
    write({ "a.yaml": [writer("kept")], "b.yaml": [invalid()] });
    await commit();
    await git("rm", "-q", "manifests/b.yaml");
    expect(actionsOf((await gate(["--prune-against", "main"])).report)).toEqual(["delete gone", "none kept"]);
  });
});

it("a branch that lacks what its target has is told so, with the paths, and a gate may fail on it", async () => {
  write({ "a.yaml": [writer("kept", { age: 22 })], "README.md": "old" });
  await commit();
  await git("checkout", "-qb", "feature");
  await git("checkout", "-q", "main");
  write({ "a.yaml": [writer("kept")], "README.md": "new" });
  await commit("others' work");
  await git("checkout", "-q", "feature");

  const behind = ["HEAD lacks 1 commit of main that changes these paths: manifests/a.yaml"];
  expect(await gate(["--prune-against", "main"])).toMatchObject({ code: 0, report: { behind } });
  expect((await gate(["--prune-against", "main", "--fail-on", "behind"])).code).toBe(1);
  await gate(["--prune-against", "main", "-o", "text"]).catch(() => {});
  expect(output.stdout).toContain(`note: ${behind[0]}`);

  await git("merge", "-q", "main");
  const merged = await gate(["--prune-against", "main", "--fail-on", "behind"]);
  expect(merged).toMatchObject({ code: 0, report: { behind: [] } });
});

it("a row that the records give to a new object is shown with what is overwritten", async () => {
  const key = `${cluster.namespace}/taken`;
  await database.query(`INSERT INTO ${table} VALUES ($1, 'bob', 23, 'chile')`, [key]);
  write({ "a.yaml": [writer("taken")] });
  const refused = await gate();
  const [error = ""] = refused.objects.taken?.errors ?? [];
  expect(refused.objects.taken?.action).toBe("failed");

  await database.query(error.split("overwrites it: ")[1] as string);
  const fields = [
    { path: "values.country", before: "chile", after: "canada" },
    { path: "values.name", before: "bob", after: "alex" },
  ];
  for (const words of [[], ["--propose"]]) {
    const resources = [{ operation: "adopt", fields }];
    expect((await gate(words)).objects.taken).toMatchObject({ action: "create", resources });
  }
});

describe("nulls are read as the API server reads them", () => {
  it.each<[string, (name: string) => object]>([
    ["a field without a value", (name) => writer(name, { name: null })],
    ["a label without a value", (name) => writer(name, {}, { labels: { a: null, b: "c" } })],
    ["an annotation without a value", (name) => writer(name, {}, { annotations: { "example.com/a": null } })],
    ["labels without a value", (name) => writer(name, {}, { labels: null, annotations: null })],
    ["no spec", (name) => ({ ...writer(name), spec: undefined })],
    ["a spec without a value", (name) => ({ ...writer(name), spec: null })],
    ["a list of which all is commented out", (name) => tenant(name, { adminGroups: null })],
  ])("%s", async (_, manifestOf) => {
    const manifest = manifestOf("null") as Manifest;
    write({ "a.yaml": [manifest] });
    const { report } = await gate();
    const offline = await gate([], { KUBECONFIG: join(directory, "no-such-kubeconfig") });
    const created = await cluster.client.create(manifest, { fieldManager: "kubectl" }).then(
      async ({ metadata }) => {
        await cluster.client.delete(manifest, metadata.name, metadata.namespace);
        return "taken";
      },
      () => "refused",
    );
    const verdict = ({ objects, problems }: Report) =>
      problems.length > 0 || objects.some(({ action }) => action === "invalid") ? "refused" : "taken";
    expect([verdict(report), verdict(offline.report)]).toEqual([created, created]);
  });

  it("a label without a value is the empty one", async () => {
    const { metadata } = await cluster.client.create(writer("null", {}, { labels: { a: null } }) as never);
    await cluster.client.delete(WRITER, "null", cluster.namespace);
    expect(metadata.labels).toEqual({ a: "" });
  });
});
