import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { known, type ResourceType } from "../../providers/kubernetes/client";
import { eventually } from "../../src/testing/eventually";
import { findCondition } from "../../stacks/contract/condition";
import { statusOf } from "../../stacks/contract/kind";
import { CONFIG_MAP, uniqueName } from "./manifests";
import { client } from "./objects";
import { useOperator } from "./operator";

/*
 * The code of a kind changes between two starts of the operator: in its folder, in a template, in a package of the same
 * workspace.
 */

const directory = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "kindstack-code-")));
const group = `${uniqueName("code")}.example.com`;
const NOTE: ResourceType = { apiVersion: `${group}/v1`, kind: "Note", plural: "notes", namespaced: true };
const name = uniqueName("note");

const KIND = `import { readFileSync } from "node:fs";
import { join } from "node:path";
import { defineKind, Type } from "kindstack";
import { KubernetesObject } from "kindstack/providers/kubernetes";
import { label } from "labels";
export const note = defineKind({
  group: ${JSON.stringify(group)}, version: "v1", kind: "Note", plural: "notes", singular: "note", scope: "Namespaced",
  description: "", spec: Type.Object({}), status: Type.Object({}), columns: [], owns: [{ apiVersion: "v1", kind: "ConfigMap" }],
  directory: __dirname, report: () => ({}),
  program({ metadata: { name, namespace = "" } }, { owner }) {
    const text = readFileSync(join(__dirname, "text.tpl"), "utf8");
    const metadata = { name, namespace };
    new KubernetesObject(name, { owner, manifest: { apiVersion: "v1", kind: "ConfigMap", metadata, data: { text, label } } });
  },
});
`;

function write(file: string, text: string): void {
  fs.mkdirSync(path.dirname(path.join(directory, file)), { recursive: true });
  fs.writeFileSync(path.join(directory, file), text);
}

write("notes/index.ts", KIND);
write("notes/text.tpl", "first");
write("labels/package.json", JSON.stringify({ name: "labels", main: "lib/index.js" }));
write("labels/lib/index.js", 'exports.label = "first";');
fs.mkdirSync(path.join(directory, "node_modules"));
fs.symlinkSync("../labels", path.join(directory, "node_modules/labels"));
const operator = useOperator({ args: ["--kinds", path.join(directory, "notes")] });

beforeAll(async () => {
  await client.apply({
    apiVersion: NOTE.apiVersion,
    kind: NOTE.kind,
    metadata: { name, namespace: "default" },
    spec: {},
  });
  await untilMade({ text: "first", label: "first" });
});
afterAll(async () => {
  await client.delete(NOTE, name, "default");
  await eventually(async () => expect(await known(client.get(NOTE, name, "default"))).toBeUndefined());
  const definitions = await client.resourceType("apiextensions.k8s.io/v1", "CustomResourceDefinition");
  await client.delete(definitions, `notes.${group}`);
  fs.rmSync(directory, { recursive: true });
});

async function status() {
  const object = await known(client.get(NOTE, name, "default"));
  if (object === undefined) throw new Error(`there is no Note ${name}`);
  return statusOf(object);
}

async function untilMade(data: object): Promise<void> {
  await eventually(async () => {
    expect((await known(client.get(CONFIG_MAP, name, "default")))?.data).toEqual(data);
    expect(findCondition((await status()).conditions, "Synced")?.status).toBe("True");
  });
}

it.each([
  ["a comment", "notes/index.ts", `${KIND}// new`],
  [
    "a refactoring of a package of the workspace",
    "labels/lib/index.js",
    'const label = "first"; exports.label = label;',
  ],
  ["a file that the program does not read", "notes/other.json", "{}"],
])("%s updates nothing, and the object has the new program", async (_, file, text) => {
  const before = (await status()).stack?.program;
  write(file, text);
  await operator.restart();

  await eventually(async () => expect((await status()).stack?.program).not.toBe(before));
  expect(await operator.metric("kindstack_updates_total")).toBe(0);
  await untilMade({ text: "first", label: "first" });
});

it.each([
  [
    "a package of the workspace",
    "labels/lib/index.js",
    'exports.label = "second";',
    { text: "first", label: "second" },
  ],
  ["a template", "notes/text.tpl", "second", { text: "second", label: "second" }],
])("what changes in %s reaches the object", async (_, file, text, data) => {
  const before = (await status()).stack?.program;
  write(file, text);
  await operator.restart();
  await untilMade(data);
  await eventually(async () => expect((await status()).stack?.program).not.toBe(before));
});

it("does not run programs again for a test", async () => {
  const before = (await status()).stack?.program;
  write("notes/program.test.ts", "");
  await operator.restart();
  await eventually(async () => expect(await operator.metric("controller_runtime_reconcile_total")).toBeGreaterThan(0));
  expect((await status()).stack?.program).toBe(before);
});
