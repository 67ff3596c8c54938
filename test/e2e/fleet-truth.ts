import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, expect, it } from "vitest";
import { known, type LiveObject, type ResourceType } from "../../providers/kubernetes/client";
import type { Report } from "../../src/preview/report";
import { eventually } from "../../src/testing/eventually";
import { findCondition } from "../../stacks/contract/condition";
import { statusOf } from "../../stacks/contract/kind";
import { CONFIG_MAP, client, uniqueName } from "./objects";
import { kindstack, useOperator } from "./operator";

/*
 * What a preview of the fleet says is what the rollout then does, object by object: random programs and schemas, one after the
 * other, over objects that are in the state in which the one before has left them, and some of which others have changed.
 */

const ROOT = path.resolve(__dirname, "../..");
const directory = fs.mkdtempSync(path.join(os.tmpdir(), "kindstack-truth-"));
const [rolledOut, branch] = [path.join(directory, "main"), path.join(directory, "branch")];
const group = `${uniqueName("truth")}.example.com`;
const NOTE: ResourceType = { apiVersion: `${group}/v1`, kind: "Note", plural: "notes", namespaced: true };
const namespace = uniqueName("truth");
const SIZES = [0, 1, 2, 3, 4, 5];
const nameOf = (size: number) => `note-${size}`;

const KIND = `import { readFileSync } from "node:fs";
import { join } from "node:path";
import { defineKind, Type } from "kindstack";
import { KubernetesObject } from "kindstack/providers/kubernetes";
const recipe = JSON.parse(readFileSync(join(__dirname, "recipe.json"), "utf8"));
export const note = defineKind({
  group: ${JSON.stringify(group)}, version: "v1", kind: "Note", plural: "notes", singular: "note", scope: "Namespaced",
  description: "", status: Type.Object({}), columns: [],
  spec: Type.Object({
    size: Type.Integer({ minimum: recipe.least, maximum: recipe.most }),
    tone: Type.Optional(Type.String({ default: recipe.tone })),
  }),
  owns: [{ apiVersion: "v1", kind: "ConfigMap" }], directory: __dirname, report: () => ({}),
  program({ metadata: { name, namespace = "" }, spec: { size, tone } }, { owner }) {
    const make = (name: string, text: string) =>
      new KubernetesObject(name, { owner, manifest: { apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace }, data: { text } } });
    if (size === recipe.failsAt) throw new Error("refused by " + recipe.id);
    make(name + recipe.suffix, size % 2 === 0 ? "even" : recipe.text + tone);
    if (size > recipe.extraAbove) make(name + "-extra", recipe.text);
  },
});
`;

interface Recipe {
  text: string;
  suffix: string;
  extraAbove: number;
  failsAt: number;
  least: number;
  most: number;
  tone: string;
  /** Makes each program another one. */
  id: string;
}
const RECIPES: fc.Arbitrary<Recipe> = fc.record({
  text: fc.constantFrom("a", "b", "c"),
  suffix: fc.constantFrom("", "", "-moved"),
  extraAbove: fc.integer({ min: 1, max: 6 }),
  failsAt: fc.integer({ min: 0, max: 12 }),
  least: fc.integer({ min: -3, max: 1 }),
  most: fc.integer({ min: 3, max: 9 }),
  tone: fc.constantFrom("calm", "loud"),
  id: fc.uuid(),
});
/** What others do to what objects have made, while no operator runs: by the object's size. */
const DRIFTS = fc.dictionary(fc.constantFrom(...SIZES.map(String)), fc.constantFrom("changed", "gone"), { maxKeys: 3 });

async function drift(drifts: Readonly<Record<string, string>>): Promise<void> {
  const before = await made();
  for (const [size, what] of Object.entries(drifts)) {
    const name = [...before.keys()].find((one) => one.startsWith(nameOf(Number(size))));
    if (name === undefined) continue;
    if (what === "gone") await client.delete(CONFIG_MAP, name, namespace);
    else await client.mergePatch(CONFIG_MAP, name, namespace, { data: { text: "by hand" } });
  }
}

function write(folder: string, recipe: Recipe): void {
  fs.mkdirSync(folder, { recursive: true });
  fs.writeFileSync(path.join(folder, "index.ts"), KIND);
  fs.writeFileSync(path.join(folder, "recipe.json"), JSON.stringify(recipe));
}

const find = async (size: number) => (await known(client.get(NOTE, nameOf(size), namespace))) as LiveObject;
const syncedOf = (object: LiveObject) => findCondition(statusOf(object).conditions, "Synced")?.status;

/** By name, what the objects have made. */
async function made(): Promise<Map<string, LiveObject>> {
  const { items } = await client.list(CONFIG_MAP, { namespace });
  const own = items.filter(({ metadata }) => metadata.name.startsWith("note-"));
  return new Map(own.map((object) => [object.metadata.name, object]));
}

/** `create note-1-extra`, as the preview tells it and as it has come. */
async function changesSince(before: Map<string, LiveObject>): Promise<string[]> {
  const after = await made();
  const deleted = [...before.keys()].filter((name) => !after.has(name)).map((name) => `delete ${name}`);
  const others = [...after].flatMap(([name, { metadata, data }]) => {
    const former = before.get(name);
    if (former === undefined) return [`create ${name}`];
    const isSame = former.metadata.uid === metadata.uid && JSON.stringify(former.data) === JSON.stringify(data);
    return isSame ? [] : [`update ${name}`];
  });
  return [...deleted, ...others].sort();
}

/** The report of a command that may fail, as an object would. */
function reported(words: string[], env: Record<string, string>): Report {
  const file = path.join(directory, "report.json");
  fs.rmSync(file, { force: true });
  try {
    kindstack([...words, "--report", file], env);
  } catch {} // the report says it
  return JSON.parse(fs.readFileSync(file, "utf8")) as Report;
}

const changesOf = ({ name, action, errors, resources }: Report["objects"][number]) => ({
  ...{ name, action, errors },
  changes: resources.map(({ operation, name, fields }) => ({ operation, name, fields })),
});

/** Defines the tests of so many rollouts, one after the other. */
export function fleetTruth(rollouts: number, seed: number): void {
  write(rolledOut, { text: "a", suffix: "", extraAbove: 3, failsAt: 12, least: 0, most: 9, tone: "calm", id: "first" });
  fs.symlinkSync(path.join(ROOT, "node_modules"), path.join(directory, "node_modules"));
  const operator = useOperator({ args: ["--kinds", rolledOut] });

  beforeAll(async () => {
    await client.apply({ apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } });
    const { apiVersion, kind } = NOTE;
    for (const size of SIZES) {
      await client.apply({ apiVersion, kind, metadata: { name: nameOf(size), namespace }, spec: { size } });
    }
    for (const size of SIZES) await eventually(async () => expect(syncedOf(await find(size))).toBe("True"));
  });
  afterAll(async () => {
    await client.delete({ apiVersion: "v1", kind: "Namespace" }, namespace);
    const gone = async () => expect((await client.list(NOTE, { namespace })).items).toEqual([]);
    await eventually(gone);
    await client.delete({ apiVersion: "apiextensions.k8s.io/v1", kind: "CustomResourceDefinition" }, `notes.${group}`);
    fs.rmSync(directory, { recursive: true });
  });

  const cases = fc.sample(fc.tuple(RECIPES, DRIFTS), { seed, numRuns: rollouts });
  it.each(cases)("what is said of %j, after the drift %j, is what it does", async (recipe, drifts) => {
    await operator.stop();
    await drift(drifts);
    write(branch, recipe);
    const env = { PULUMI_BACKEND_URL: `file://${operator.stateDirectory}` };
    const { objects } = reported(["preview", "--fleet", "--kinds", branch, "--refresh"], env);
    const [fleet, declared] = [path.join(directory, "fleet.json"), path.join(directory, "declared.json")];
    kindstack(["fleet", "fetch", "--kinds", rolledOut, "--to", fleet]);
    kindstack(["fleet", "run", fleet, "--kinds", branch, "--to", declared]);
    const steps = reported(["fleet", "submit", fleet, declared, "--kinds", rolledOut, "--refresh"], env);
    expect(steps.objects.map(changesOf)).toEqual(objects.map(changesOf));
    expect(objects.map(({ name }) => name).sort()).toEqual(SIZES.map(nameOf));
    const isRefused = new Map(objects.map(({ name, action }) => [name, action === "failed" || action === "invalid"]));
    const told = objects.flatMap(({ name, resources }) =>
      isRefused.get(name) ? [] : resources.map((resource) => `${resource.operation} ${resource.name}`),
    );
    const before = await made();
    const programs = new Map(
      await Promise.all(SIZES.map(async (size) => [size, statusOf(await find(size)).stack?.program] as const)),
    );

    write(rolledOut, recipe);
    await operator.start();
    for (const size of SIZES) {
      await eventually(async () => {
        const object = await find(size);
        const isDone = syncedOf(object) === "True" && statusOf(object).stack?.program !== programs.get(size);
        expect([nameOf(size), isDone ? "done" : syncedOf(object)]).toEqual([
          nameOf(size),
          isRefused.get(nameOf(size)) ? "False" : "done",
        ]);
      });
    }
    expect(await changesSince(before)).toEqual(told.sort());
  });
}
