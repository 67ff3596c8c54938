import fs from "node:fs";
import path from "node:path";
import { Check } from "typebox/value";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { known, type ResourceType } from "../../providers/kubernetes/client";
import { type Report, reportSchema } from "../../src/preview/report";
import { useDirectory } from "../directories";
import { CONFIG_MAP, uniqueName } from "./manifests";
import { applySynced, removeKind } from "./notes";
import { client } from "./objects";
import { kindstack, useOperator } from "./operator";

/*
 * What a program and a schema that are yet to be rolled out would do to every live object of the kind.
 */

const ROOT = path.resolve(__dirname, "../..");
const directory = useDirectory();
const [rolledOut, branch] = [path.join(directory, "main"), path.join(directory, "branch")];
const group = `${uniqueName("fleet")}.example.com`;
const NOTE: ResourceType = { apiVersion: `${group}/v1`, kind: "Note", plural: "notes", namespaced: true };
const namespace = "default";

/** @param definition of the version, the schema and the program */
function write(folder: string, definition: string): void {
  fs.mkdirSync(folder, { recursive: true });
  fs.writeFileSync(
    path.join(folder, "index.ts"),
    `import { defineKind, servedVersion, Type } from "kindstack";
import { KubernetesObject } from "kindstack/providers/kubernetes";
const names = { group: ${JSON.stringify(group)}, kind: "Note", plural: "notes", singular: "note", scope: "Namespaced" } as const;
const rest = {
  ...names, description: "", status: Type.Object({}), columns: [], owns: [{ apiVersion: "v1", kind: "ConfigMap" }],
  directory: __dirname, report: () => ({}),
};
const make = ({ namespace }: any, owner: any, name: string, data: object) =>
  new KubernetesObject(name, { owner, manifest: { apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace }, data } });
const v1 = Type.Object({ text: Type.String(), legacy: Type.Optional(Type.String()) });
export const note = defineKind({ ...rest, ${definition} });
`,
  );
}

const PROGRAM = `version: "v1", spec: v1, program({ metadata, spec }, { owner }) {
  make(metadata, owner, metadata.name, { text: spec.text, edition: "first" });
}`;

write(rolledOut, PROGRAM);
fs.symlinkSync(path.join(ROOT, "node_modules"), path.join(directory, "node_modules"));
const operator = useOperator({ args: ["--kinds", rolledOut] });

const specs = { one: "short", two: "short", moved: "move", broken: "throw", long: "a long text", still: "same" };
beforeAll(async () => {
  const specOf = (name: string, text: string) => [name, { text, ...(name === "still" && { legacy: "x" }) }];
  await applySynced(
    NOTE,
    namespace,
    Object.fromEntries(Object.entries(specs).map(([name, text]) => specOf(name, text))),
  );
});
beforeEach(() => fs.rmSync(branch, { recursive: true, force: true }));
afterAll(() => removeKind(NOTE, namespace));

const fleet = (...words: string[]) => reported(["preview", "--fleet", "--kinds", branch, ...words]);

/** What a command prints, and whether it passes. */
function reported(args: string[]): { text: string; passes: boolean } {
  try {
    return { text: kindstack(args, { PULUMI_BACKEND_URL: `file://${operator.stateDirectory}` }), passes: true };
  } catch (error) {
    return { text: (error as { stdout: string }).stdout, passes: false };
  }
}

it("is told by groups of objects, and nothing is written", async () => {
  write(
    branch,
    `version: "v1", spec: Type.Object({ text: Type.String({ maxLength: 6 }) }), program({ metadata, spec }, { owner }) {
      if (spec.text === "throw") throw new Error("no such text in " + metadata.name);
      const name = metadata.name + (spec.text === "move" ? "-moved" : "");
      make(metadata, owner, name, { text: spec.text, edition: spec.text === "same" ? "first" : "second" });
    }`,
  );
  const { text, passes } = fleet("-o", "json");
  expect(passes).toBe(false);
  const { differences = [], summary } = JSON.parse(text) as Report;
  expect(Check(reportSchema, JSON.parse(text))).toBe(true);
  const [invalid, failed, moved, updated] = differences;
  expect(differences).toHaveLength(5);
  expect(differences.filter(({ action }) => action === "invalid").map(({ objects }) => objects)).toEqual([
    ["default/long"],
    ["default/still"],
  ]);
  expect([invalid, failed].map((one) => one?.errors.join())).toEqual([
    expect.stringMatching(/text|legacy/),
    expect.stringMatching(/text|legacy/),
  ]);
  expect(moved).toMatchObject({ action: "failed", objects: ["default/broken"] });
  expect(moved?.errors.join()).toContain("no such text in broken");
  expect([updated, differences[4]].map((one) => one?.objects)).toEqual([
    ["default/one", "default/two"],
    ["default/moved"],
  ]);
  expect(updated).toMatchObject({
    action: "update",
    resources: [
      {
        operation: "update",
        type: "ConfigMap",
        count: 1,
        fields: [{ path: "data.edition", before: "first", after: "second" }],
      },
    ],
  });
  expect(summary).toMatchObject({ invalid: 2, failed: 1, update: 3 });
  expect(fleet().text).toContain(
    'Note: 2 to update: update ConfigMap\n  ~ update ConfigMap\n      data.edition: "first" → "second"\n  default/one, default/two',
  );
  expect(fleet("-o", "markdown").text).toContain("| ✏️ update | `Note` | 2 | update `ConfigMap` |");
  expect((await known(client.get(CONFIG_MAP, "one", namespace)))?.data).toMatchObject({ edition: "first" });
});

it("is told in the same way by `kindstack diff --all`, also for a kind that is new", () => {
  write(
    branch,
    `version: "v1", spec: v1, program({ metadata, spec }, { owner }) {
      make(metadata, owner, metadata.name + (spec.text === "move" ? "-moved" : ""), { text: spec.text, edition: "second" });
    }, });
export const memo = defineKind({ ...rest, kind: "Memo", plural: "memos", singular: "memo", version: "v1", spec: v1, program() {}`,
  );
  const diff = (...words: string[]) => reported(["diff", "--all", "--kinds", branch, ...words]);
  for (const format of ["json", "text", "markdown"]) {
    const told = diff("-o", format, "--fail-on", "replace");
    expect(told).toEqual(fleet("-o", format, "--fail-on", "replace"));
    expect(told).toMatchObject({ passes: true, text: expect.stringContaining(`memos.${group} is new`) });
  }
  const { differences = [] } = JSON.parse(diff("-o", "json").text) as Report;
  expect(differences.map(({ action, objects }) => [action, objects.length])).toEqual([
    ["update", 5],
    ["update", 1],
  ]);
  expect(diff("--fail-on", "delete").passes).toBe(false);
  expect(diff("--fail-on", "unchecked").passes).toBe(true);
});

it("finds the objects that the cluster has in a version which the program stores no more", () => {
  write(
    branch,
    `version: "v2", spec: Type.Object({ content: Type.String() }),
    program({ metadata, spec }, { owner }) { make(metadata, owner, metadata.name, { text: spec.content, edition: "first" }); },
    capabilities: { versions: [servedVersion({
      version: "v1", spec: v1,
      toStored: ({ spec, annotations }: any) => ({ spec: { content: spec.text }, annotations }),
      fromStored: ({ spec, annotations }: any) => ({ spec: { text: spec.content }, annotations }),
    })] },`,
  );
  const { text, passes } = fleet("--fail-on", "update,delete");
  expect([passes, text]).toEqual([true, expect.stringContaining("Note: 6 unchanged")]);
});

it("fails a gate where the program serves no version in which the cluster has objects", () => {
  write(branch, PROGRAM.replace('version: "v1"', 'version: "v3"'));
  const { text, passes } = fleet("--fail-on", "delete");
  expect(passes).toBe(false);
  expect(text).toContain(
    "Note: 6 invalid\n  error: the API server refuses the definition: objects may be stored in v1, which it does not serve",
  );
  expect(text).toContain(`notes.${group}: the cluster serves v1, and this program does not`);
});
