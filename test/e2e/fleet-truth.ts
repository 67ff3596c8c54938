import fs from "node:fs";
import path from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { known, type LiveObject, type Manifest, type ResourceType } from "../../providers/kubernetes/client";
import type { Report } from "../../src/preview/report";
import { eventually } from "../../src/testing/eventually";
import { findCondition } from "../../stacks/contract/condition";
import { statusOf } from "../../stacks/contract/kind";
import { useDirectory } from "../directories";
import { CONFIG_MAP, uniqueName } from "./manifests";
import { client } from "./objects";
import { kindstack, useOperator } from "./operator";

/*
 * What a preview of the fleet says is what the rollout then does, object by object: random programs and schemas, one after the
 * other, over objects that are in the state in which the one before has left them, and some of which others have changed.
 */

const ROOT = path.resolve(__dirname, "../..");
const directory = useDirectory();
const [rolledOut, branch] = [path.join(directory, "main"), path.join(directory, "branch")];
const group = `${uniqueName("truth")}.example.com`;
/** In the version in which objects are stored. */
const noteOf = ({ stored }: Pick<Recipe, "stored">): ResourceType => ({
  ...{ apiVersion: `${group}/${stored}`, kind: "Note", plural: "notes", namespaced: true },
});
const DEFINITION = { apiVersion: "apiextensions.k8s.io/v1", kind: "CustomResourceDefinition" };
const namespace = uniqueName("truth");
const SIZES = [0, 1, 2, 3, 4, 5];
const nameOf = (size: number) => `note-${size}`;

const KIND = `import { readFileSync } from "node:fs";
import { join } from "node:path";
import { defineKind, servedVersion, Type } from "kindstack";
import { KubernetesObject } from "kindstack/providers/kubernetes";
const recipe = JSON.parse(readFileSync(join(__dirname, "recipe.json"), "utf8"));
const size = Type.Integer({ minimum: recipe.least, maximum: recipe.most });
const others = {
  tone: Type.Optional(Type.String({ default: recipe.tone })),
  ...(recipe.hasMark && { mark: Type.Optional(Type.String()) }),
};
const SPECS: any = { v1: Type.Object({ size, ...others }), v2: Type.Object({ level: size, ...others }) };
const FIELDS: any = { v1: "size", v2: "level" };
const stored: string = recipe.stored;
const other = stored === "v1" ? "v2" : "v1";
const convert = (from: string, to: string, by: number) => ({ spec: { [FIELDS[from]]: value, ...rest }, annotations }: any) =>
  ({ spec: { ...rest, [FIELDS[to]]: value + by }, annotations });
const shift = stored === "v2" ? recipe.shift : -recipe.shift;
const versions = [servedVersion({
  version: other, spec: SPECS[other], toStored: convert(other, stored, shift), fromStored: convert(stored, other, -shift),
})];
export const note = defineKind({
  group: ${JSON.stringify(group)}, version: stored, kind: "Note", plural: "notes", singular: "note", scope: "Namespaced",
  description: "", status: Type.Object({}), columns: [],
  spec: SPECS[stored], capabilities: recipe.servesBoth ? { versions } : {},
  owns: [{ apiVersion: "v1", kind: "ConfigMap" }], directory: __dirname, report: () => ({}),
  program({ metadata: { name, namespace = "" }, spec }: any, { owner }) {
    const { [FIELDS[stored]]: size, tone, mark = "" } = spec;
    const make = (name: string, text: string) =>
      new KubernetesObject(name, { owner, manifest: { apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace }, data: { text } } });
    if (size === recipe.failsAt) throw new Error("refused by " + recipe.id);
    make(name + recipe.suffix, size % 2 === 0 ? "even" : recipe.text + tone + mark);
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
  /** Whether the schema has a field that objects have; without it, the API server drops the field. */
  hasMark: boolean;
  stored: "v1" | "v2";
  servesBoth: boolean;
  /** By how much a conversion from v1 to v2 changes the number that both have, under another name. */
  shift: number;
  /** Whether each object is written after the rollout, so that all are stored in one version. */
  migrates: boolean;
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
  hasMark: fc.constantFrom(true, true, false),
  stored: fc.constantFrom("v1", "v2"),
  servesBoth: fc.constantFrom(true, true, false),
  shift: fc.integer({ min: 0, max: 1 }),
  migrates: fc.constantFrom(true, true, false),
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

async function storedVersions(): Promise<string[]> {
  const definition = await known(client.get(DEFINITION, `notes.${group}`));
  const { storedVersions = [] } = (definition?.status ?? {}) as { storedVersions?: string[] };
  return storedVersions;
}

/** Has all objects stored in the present version, as docs/versions.md says. */
async function migrate(recipe: Recipe): Promise<void> {
  for (const size of SIZES) {
    await client.mergePatch(noteOf(recipe), nameOf(size), namespace, {
      metadata: { annotations: { written: recipe.id } },
    });
  }
  await client.json("PATCH", `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/notes.${group}/status`, {
    body: { status: { storedVersions: [recipe.stored] } },
    contentType: "application/merge-patch+json",
  });
}

const FIRST: Recipe = {
  ...{ text: "a", suffix: "", extraAbove: 3, failsAt: 12, least: 0, most: 9, tone: "calm", hasMark: true },
  ...{ stored: "v1", servesBoth: true, shift: 0, migrates: true, id: "first" },
};

/** Defines the tests of so many rollouts, one after the other. */
export function fleetTruth(rollouts: number, seed: number): void {
  let present = FIRST;
  write(rolledOut, present);
  fs.symlinkSync(path.join(ROOT, "node_modules"), path.join(directory, "node_modules"));
  const operator = useOperator({ args: ["--kinds", rolledOut, "--admission-port", "0"] });
  const find = async (size: number) =>
    (await known(client.get(noteOf(present), nameOf(size), namespace))) as LiveObject;

  beforeAll(async () => {
    await client.apply({ apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } });
    const { apiVersion, kind } = noteOf(present);
    for (const size of SIZES) {
      const spec = { size, ...(size % 3 === 1 && { mark: "marked" }) };
      await client.apply({ apiVersion, kind, metadata: { name: nameOf(size), namespace }, spec });
    }
    for (const size of SIZES) await eventually(async () => expect(syncedOf(await find(size))).toBe("True"));
  });
  afterAll(async () => {
    await client.delete({ apiVersion: "v1", kind: "Namespace" }, namespace);
    const gone = async () => expect((await client.list(noteOf(present), { namespace })).items).toEqual([]);
    await eventually(gone);
    await client.delete(DEFINITION, `notes.${group}`);
  });

  const cases = fc.sample(fc.tuple(RECIPES, DRIFTS), { seed, numRuns: rollouts });
  it.each(cases)("what is said of %j, after the drift %j, is what it does", async (recipe, drifts) => {
    // The conversion of what is stored in two versions needs an operator, which repairs what has drifted.
    const isMixed = (await storedVersions()).length > 1;
    if (!isMixed) await operator.stop();
    if (!isMixed) await drift(drifts);
    write(branch, recipe);
    const env = { PULUMI_BACKEND_URL: `file://${operator.stateDirectory}` };
    const { objects } = reported(["preview", "--fleet", "--kinds", branch, "--refresh"], env);
    const [fleet, declared] = [path.join(directory, "fleet.json"), path.join(directory, "declared.json")];
    kindstack(["fleet", "fetch", "--kinds", rolledOut, "--to", fleet]);
    kindstack(["fleet", "run", fleet, "--kinds", branch, "--to", declared]);
    const steps = reported(["fleet", "submit", fleet, declared, "--kinds", rolledOut, "--refresh"], env);
    expect(steps.objects.map(changesOf)).toEqual(objects.map(changesOf));
    expect(objects.map(({ name }) => name).sort()).toEqual(SIZES.map(nameOf));

    const lost = (await storedVersions()).filter((version) => version !== recipe.stored && !recipe.servesBoth);
    const [said] = objects.flatMap(({ errors }) => errors.filter((error) => error.includes("be stored in")));
    expect(lost.length > 0).toBe(said?.startsWith("the API server refuses") ?? false);
    if (said !== undefined) {
      for (const { action, errors, resources } of objects) {
        expect([action, errors, resources]).toEqual([lost.length > 0 ? "invalid" : "unchecked", [said], []]);
      }
      if (lost.length > 0) {
        const manifests = parseAllDocuments(kindstack(["crds", "--kinds", branch])).map(
          (one) => one.toJS() as Manifest,
        );
        const refused = manifests.find(({ metadata }) => metadata.name === `notes.${group}`);
        await expect(client.apply(refused as Manifest)).rejects.toThrow(`Invalid value: "${lost[0]}"`);
      }
      if (!isMixed) await operator.start();
      return;
    }

    const isRefused = new Map(
      objects.map(({ name, action, errors }) => [
        name,
        // A field that is dropped keeps nothing from being updated.
        action === "failed" || (action === "invalid" && !errors.every((error) => error.endsWith(NO_FIELD))),
      ]),
    );
    const told = objects.flatMap(({ name, resources }) =>
      isRefused.get(name) ? [] : resources.map((resource) => `${resource.operation} ${resource.name}`),
    );
    const before = await made();
    const programs = new Map(
      await Promise.all(SIZES.map(async (size) => [size, statusOf(await find(size)).stack?.program] as const)),
    );

    if (isMixed) await operator.stop();
    write(rolledOut, recipe);
    present = recipe;
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
    if (recipe.migrates) await migrate(recipe);
  });
}

const NO_FIELD = "there is no such field";
