import fs from "node:fs";
import path from "node:path";
import { beforeAll, expect, it } from "vitest";
import { known, type ResourceType } from "../../providers/kubernetes/client";
import { eventually } from "../../src/testing/eventually";
import { DELETION_POLICY_ANNOTATION } from "../../stacks/contract/annotations";
import { findCondition } from "../../stacks/contract/condition";
import { statusOf } from "../../stacks/contract/kind";
import { MODE_ANNOTATION } from "../../stacks/contract/mode";
import { PLAN_TYPE, type Plan } from "../../stacks/contract/plan";
import { useDirectory } from "../directories";
import { CONFIG_MAP, DEPLOYMENT, MEMCACHED, uniqueName } from "./manifests";
import { client } from "./objects";
import { kindstack, useOperator } from "./operator";

/*
 * Objects that are deleted while they are made. The provider writes a file, and waits for something that never happens. Updates
 * may take the default time, which no test waits for.
 */

const ROOT = path.resolve(__dirname, "../..");
const directory = useDirectory();
const [folder, shelf] = [path.join(directory, "slow"), path.join(directory, "shelf")];
const group = `${uniqueName("slow")}.example.com`;
const typeOf = (kind: string): ResourceType => {
  return { apiVersion: `${group}/v1`, kind, plural: `${kind.toLowerCase()}s`, namespaced: true };
};
const [SLOW, SLOW_SDK] = [typeOf("Slow"), typeOf("Slowsdk")];

beforeAll(() => {
  fs.mkdirSync(folder);
  fs.mkdirSync(shelf);
  fs.symlinkSync(path.join(ROOT, "node_modules"), path.join(directory, "node_modules"));
  fs.writeFileSync(path.join(folder, "index.js"), MODULE);
});

const operator = useOperator({ args: ["--kinds", `memcacheds,${folder}`, "--kind-files", shelf] });

const MODULE = `
const fs = require("node:fs");
const { defineKind, defineProvider, DynamicResource, RetryableError, Type } = require("kindstack");
const { KubernetesObject } = require("kindstack/providers/kubernetes");
const never = (signal) => new Promise((_, reject) => {
  const stop = () => reject(new RetryableError("Interrupted", "told to end"));
  if (signal.aborted) stop();
  signal.addEventListener("abort", stop);
});
const { stub, provider } = defineProvider("slow", {
  check: async (_, inputs) => ({ inputs, failures: [] }),
  diff: async () => ({ changes: false }),
  async create({ file, mode }, { signal, progress }) {
    fs.appendFileSync(file + ".creations", "x");
    const isThere = fs.existsSync(file);
    fs.writeFileSync(file, mode);
    const made = { id: file, outs: { file, mode } };
    if (mode === "adopts" && isThere) return made;
    progress("waits for ever");
    try {
      await never(signal);
    } catch (error) {
      throw ["tells", "hangs", "protects"].includes(mode) ? new RetryableError("Interrupted", error.message, { made }) : error;
    }
  },
  read: async (id, props) => ({ id, props }),
  update: async (_, __, news) => ({ outs: news }),
  delete: async (id) => fs.rmSync(id, { force: true }),
  release: async () => {},
});
class File extends DynamicResource {
  constructor(name, inputs, options) { super({ module: "slow", name: "File", stub }, name, inputs, options); }
}
const define = (kind, capabilities) => defineKind({
  group: ${JSON.stringify(group)}, version: "v1", kind, plural: kind.toLowerCase() + "s", singular: kind.toLowerCase(),
  scope: "Namespaced", description: "", columns: [], owns: [{ apiVersion: "v1", kind: "ConfigMap" }], directory: __dirname,
  spec: Type.Object({ mode: Type.String() }), status: Type.Object({}), report: () => ({}),
  async program({ metadata: { name, namespace }, spec: { mode } }, { owner }) {
    const manifest = (name) => ({ apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace }, data: { mode } });
    const before = new KubernetesObject("before", { owner, manifest: manifest(name) }, { protect: mode === "protects" });
    const file = new File("file", { file: ${JSON.stringify(`${shelf}/`)} + name, mode }, { dependsOn: before });
    new KubernetesObject("after", { owner, manifest: manifest(name + "-after") }, { dependsOn: file });
    if (mode === "hangs") { fs.writeFileSync(${JSON.stringify(`${shelf}/`)} + name + ".runs", ""); await new Promise(() => {}); }
  },
  capabilities: { providers: [{ stub, provider }], ...capabilities },
});
exports.slow = define("Slow", {});
exports.slowsdk = define("Slowsdk", { sdkRuntime: true });
`;

const file = (name: string, ending = "") => path.join(shelf, name + ending);
const isThere = (name: string, ending = "") => fs.existsSync(file(name, ending));

/** An object that is being made, as it never ends. */
async function making(type: ResourceType, mode: string, annotations = {}): Promise<string> {
  const name = uniqueName("slow");
  const metadata = { name, namespace: "default", annotations };
  await client.create({ apiVersion: type.apiVersion, kind: type.kind, metadata, spec: { mode } });
  await eventually(() => expect(isThere(name, mode === "hangs" ? ".runs" : ".creations")).toBe(true));
  return name;
}
const configMaps = async (name: string) =>
  Promise.all([name, `${name}-after`].map((one) => known(client.get(CONFIG_MAP, one, "default"))));
const conditionOf = async (name: string, condition: string) => {
  const object = await known(client.get(SLOW, name, "default"));
  return object && findCondition(statusOf(object).conditions, condition);
};
async function untilGone(type: ResourceType, name: string): Promise<void> {
  await client.delete(type, name, "default");
  await eventually(async () => expect(await known(client.get(type, name, "default"))).toBeUndefined());
}

it.each([
  ["at once where the provider tells what it has made", "tells", 1],
  ["after the provider was asked once more, where it does not tell", "adopts", 2],
])("an object whose create never ends is deleted with all that was made: %s", async (_, mode, creations) => {
  for (const type of [SLOW, SLOW_SDK]) {
    const name = await making(type, mode);
    expect(await configMaps(name)).toEqual([expect.objectContaining({ data: { mode } }), undefined]);
    await untilGone(type, name);
    expect(await configMaps(name)).toEqual([undefined, undefined]);
    expect(isThere(name)).toBe(false);
    expect(fs.readFileSync(file(name, ".creations"), "utf8")).toHaveLength(creations);
  }
});

it("shows what a provider tells meanwhile", async () => {
  const name = await making(SLOW, "tells");
  await eventually(async () => {
    const message = "creating resources: file: waits for ever";
    expect(await conditionOf(name, "Reconciling")).toMatchObject({ reason: "Creating", message });
  });
  await untilGone(SLOW, name);
});

it("does not begin an endless create again and again", async () => {
  const name = await making(SLOW, "forgets");
  await untilGone(SLOW, name);
  expect(await configMaps(name)).toEqual([undefined, undefined]);
  expect(fs.readFileSync(file(name, ".creations"), "utf8")).toHaveLength(2);
});

it("leaves what was made by then, with the deletion policy Orphan", async () => {
  const name = await making(SLOW, "tells", { [DELETION_POLICY_ANNOTATION]: "Orphan" });
  await untilGone(SLOW, name);
  expect(isThere(name)).toBe(true);
  expect(await configMaps(name)).toEqual([expect.objectContaining({ data: { mode: "tells" } }), undefined]);
});

it("deletes nothing that is protected, until it is unprotected", async () => {
  const name = await making(SLOW, "protects");
  await client.delete(SLOW, name, "default");
  const message = await eventually(async () => {
    const synced = await conditionOf(name, "Synced");
    expect(synced).toMatchObject({
      reason: "DeletionFailed",
      message: expect.stringContaining("because it is protected"),
    });
    return synced?.message ?? "";
  });
  expect(await configMaps(name)).toEqual([expect.objectContaining({ data: { mode: "protects" } }), undefined]);
  const [, ...words] = /kindstack (state) (unprotect) (\S+) '([^']+)'/.exec(message) ?? [];
  kindstack(words, {
    PULUMI_BACKEND_URL: `file://${operator.stateDirectory}`,
    KINDSTACK_WORK_DIR: operator.workDirectory,
  });
  await untilGone(SLOW, name);
  expect(await configMaps(name)).toEqual([undefined, undefined]);
  expect(isThere(name)).toBe(false);
});

it("stops in Propose as well, and deletes what was made by then once that is approved", async () => {
  const name = uniqueName("slow");
  const metadata = { name, namespace: "default", annotations: { [MODE_ANNOTATION]: "Propose" } };
  await client.create({ apiVersion: SLOW.apiVersion, kind: SLOW.kind, metadata, spec: { mode: "tells" } });
  const approve = async (reason: "Created" | "Deleted") => {
    await eventually(async () => {
      const plans = (await client.list(PLAN_TYPE, { namespace: "default" })).items as Plan[];
      const waiting = plans.find(({ spec }) => spec.object.name === name && spec.cause.reason === reason);
      expect(waiting?.status).toMatchObject({ state: "Pending" });
    });
    kindstack(["approve", "slow", name, "--namespace", "default", "--kinds", folder, "--yes"]);
  };
  await approve("Created");
  await eventually(() => expect(isThere(name, ".creations")).toBe(true));
  await client.delete(SLOW, name, "default");
  await approve("Deleted");
  await untilGone(SLOW, name);
  expect(await configMaps(name)).toEqual([undefined, undefined]);
  expect(isThere(name)).toBe(false);
  expect(fs.readFileSync(file(name, ".creations"), "utf8")).toBe("x");
});

it("waits for no program that never ends", async () => {
  for (const type of [SLOW, SLOW_SDK]) {
    const name = await making(type, "hangs");
    await untilGone(type, name);
    expect(await configMaps(name)).toEqual([undefined, undefined]);
    expect(isThere(name)).toBe(false);
  }
});

it("deletes an object of a built-in kind whose Deployment never becomes ready", async () => {
  const name = uniqueName("cache");
  const { apiVersion, kind } = MEMCACHED;
  await client.create({
    ...{ apiVersion, kind, metadata: { name, namespace: "default" } },
    spec: { size: 1, containerPort: 11211 },
  });
  await eventually(async () => expect(await known(client.get(DEPLOYMENT, name, "default"))).toBeDefined());
  await untilGone(MEMCACHED, name);
  expect(await known(client.get(DEPLOYMENT, name, "default"))).toBeUndefined();
  expect(operator.log).not.toContain('"level":"error"');
});
