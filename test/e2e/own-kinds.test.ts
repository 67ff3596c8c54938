import fs from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { known, type Manifest, type ResourceType } from "../../providers/kubernetes/client";
import { eventually } from "../../src/testing/eventually";
import { DELETION_POLICY_ANNOTATION } from "../../stacks/contract/annotations";
import { findCondition } from "../../stacks/contract/condition";
import { statusOf } from "../../stacks/contract/kind";
import { useDirectory } from "../directories";
import { COMPILER_OPTIONS } from "./compiler-options";
import { CONFIG_MAP, uniqueName } from "./manifests";
import { client } from "./objects";
import { kindstack, type TestOperator, useOperator } from "./operator";

/*
 * Kinds that are folders outside of this repository, with a provider of their own: it writes files. The operator watches
 * them for edits.
 */

const ROOT = path.resolve(__dirname, "../..");
const directory = useDirectory();
const [group, shelf] = [`${uniqueName("own")}.example.com`, path.join(directory, "shelf")];
const COPY: ResourceType = { apiVersion: `${group}/v1`, kind: "Copy", plural: "copys", namespaced: true };
const ARCHIVE: ResourceType = { apiVersion: `${group}/v1`, kind: "Archive", plural: "archives", namespaced: true };
const RECORD: ResourceType = { apiVersion: `${group}/v1`, kind: "Record", plural: "records", namespaced: true };
const ENVELOPE: ResourceType = { apiVersion: `${group}/v1`, kind: "Envelope", plural: "envelopes", namespaced: true };
const LETTER: ResourceType = { apiVersion: `${group}/v1`, kind: "Letter", plural: "letters", namespaced: true };

const PROVIDER = `import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import type { Input } from "@pulumi/pulumi/output";
import type { CustomResourceOptions } from "@pulumi/pulumi/resource";
import { defineProvider, DynamicResource, TerminalError } from "kindstack";

interface Letter { file: string; text: string }

export const { stub, provider } = defineProvider<Letter, Letter>("post/letter", {
  check: async (_, news) => ({ inputs: news, failures: [] }),
  diff: async (_id, olds, news) => ({ changes: olds.text !== news.text, replaces: olds.file === news.file ? [] : ["file"] }),
  async create(inputs) {
    if (inputs.text === "forbidden") throw new TerminalError("Invalid", "spec.text: this text is forbidden");
    writeFileSync(inputs.file, inputs.text);
    return { id: inputs.file, outs: inputs };
  },
  read: async (id, outs) => (existsSync(id) ? { id, props: { ...outs, text: readFileSync(id, "utf8") } } : {}),
  async update(id, _olds, news) {
    writeFileSync(id, news.text);
    return { outs: news };
  },
  delete: async (id) => rmSync(id, { force: true }),
  release: async () => {},
});

export class Letters extends DynamicResource {
  constructor(name: string, inputs: { file: string; text: Input<string> }, options?: CustomResourceOptions) {
    super({ module: "post", name: "Letter", stub }, name, { ...inputs }, options);
  }
}
`;

const kindModule = (
  kind: string,
  imports: string,
  program: string,
  capabilities = "",
) => `import { defineKind, Type } from "kindstack";
${imports}
export const own = defineKind({
  group: ${JSON.stringify(group)}, version: "v1", kind: "${kind}", plural: "${kind.toLowerCase()}s",
  singular: "${kind.toLowerCase()}", scope: "Namespaced", description: "", spec: Type.Object({ text: Type.String() }),
  status: Type.Object({}), columns: [], owns: [], directory: __dirname, report: () => ({}),
  program({ metadata, spec }) {${program}}, capabilities: {${capabilities}},
});
`;

const write = (file: string, text: string) => {
  fs.mkdirSync(path.join(directory, path.dirname(file)), { recursive: true });
  fs.writeFileSync(path.join(directory, file), text);
};

beforeAll(() => {
  fs.mkdirSync(shelf);
  fs.symlinkSync(path.join(ROOT, "node_modules"), path.join(directory, "node_modules"));
  write("letter/tsconfig.json", JSON.stringify({ compilerOptions: COMPILER_OPTIONS }));
  write("letter/provider.ts", PROVIDER);
  write("letter/index.ts", letterModule("spec.text"));
  write("copy/tsconfig.json", JSON.stringify({ compilerOptions: COMPILER_OPTIONS }));
  write("copy/provider.ts", PROVIDER.replace("post/letter", "post/copy"));
  write("copy/index.ts", COPY_MODULE);
  write("archive/tsconfig.json", JSON.stringify({ compilerOptions: COMPILER_OPTIONS }));
  write("archive/index.ts", archiveModule("Archive"));
  write("record/tsconfig.json", JSON.stringify({ compilerOptions: COMPILER_OPTIONS }));
  write("record/index.ts", archiveModule("Record")); // the same under another name
  write("envelope/tsconfig.json", JSON.stringify({ compilerOptions: COMPILER_OPTIONS }));
  write("envelope/index.ts", ENVELOPE_MODULE);
  write("broken/index.ts", "export const own = ;");
  write("same/index.ts", kindModule("Letter", "", ""));
});

const letterModule = (text: string) =>
  kindModule(
    "Letter",
    'import { Letters, provider, stub } from "./provider";',
    `new Letters(metadata.name, { file: ${JSON.stringify(shelf)} + "/" + metadata.name, text: ${text} });`,
    "providers: [{ stub, provider }]",
  );
/** A program in the SDK's own runtime: the second file holds what only the first one's creation tells. */
const COPY_MODULE = kindModule(
  "Copy",
  'import { Letters, provider, stub } from "./provider";',
  `const file = ${JSON.stringify(shelf)} + "/" + metadata.name;
   const original = new Letters(metadata.name + "/original", { file, text: spec.text });
   new Letters(metadata.name + "/copy", { file: file + "-copy", text: original.id.apply((id) => "copy of " + id) });`,
  "providers: [{ stub, provider }], sdkRuntime: true",
);
/** A program with a resource that Pulumi protects: it holds the text. */
const archiveModule = (kind: string) =>
  kindModule(
    kind,
    'import { KubernetesObject } from "kindstack/providers/kubernetes";',
    `const make = (name: string, protect: boolean) =>
     new KubernetesObject(name, {
       owner,
       manifest: {
         apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace: metadata.namespace ?? "" }, data: { text: spec.text },
       },
     }, { protect });
   make(metadata.name, true);
   if (spec.text !== "alone") make(metadata.name + "-index", false);`,
    "sdkRuntime: true",
  )
    .replace("owns: []", 'owns: [{ apiVersion: "v1", kind: "ConfigMap" }]')
    .replace("program({ metadata, spec })", "program({ metadata, spec }, { owner })");
/** A plain program that makes an object of another kind. */
const ENVELOPE_MODULE = kindModule(
  "Envelope",
  'import { KubernetesObject } from "kindstack/providers/kubernetes";',
  `const { name, namespace = "" } = metadata;
   const letter = { apiVersion: ${JSON.stringify(LETTER.apiVersion)}, kind: "Letter", metadata: { name, namespace } };
   new KubernetesObject(name, { owner, manifest: { ...letter, spec: { text: spec.text } } });`,
)
  .replace("owns: []", `owns: [{ apiVersion: ${JSON.stringify(LETTER.apiVersion)}, kind: "Letter" }]`)
  .replace("program({ metadata, spec })", "program({ metadata, spec }, { owner })");
const operator = useOperator({
  args: [
    "--watch",
    ...["--kind-files", directory],
    ...["podsets", "letter", "copy", "archive", "record", "envelope", "broken", "same"].flatMap((name) => [
      "--kinds",
      name === "podsets" ? name : path.join(directory, name),
    ]),
  ],
});
afterAll(async () => {
  const definitions = await client.resourceType("apiextensions.k8s.io/v1", "CustomResourceDefinition");
  for (const { plural } of [LETTER, COPY, ARCHIVE, RECORD, ENVELOPE])
    await client.delete(definitions, `${plural}.${group}`);
});

const stateOf = ({ stateDirectory, workDirectory }: TestOperator) => ({
  PULUMI_BACKEND_URL: `file://${stateDirectory}`,
  KINDSTACK_WORK_DIR: workDirectory,
});
const letter = (name: string, text: string): Manifest => ({
  apiVersion: LETTER.apiVersion,
  kind: LETTER.kind,
  metadata: { name, namespace: "default" },
  spec: { text },
});
const apply = (manifest: Manifest) => client.apply(manifest, { fieldManager: "test" });
const conditionOf = async (type: ResourceType, name: string, condition: string) => {
  const object = await known(client.get(type, name, "default"));
  return object && findCondition(statusOf(object).conditions, condition);
};
const ready = (name: string) => conditionOf(LETTER, name, "Ready");

describe("kinds of one's own", () => {
  it("are reported by name when they cannot be served", () => {
    const refused = operator.log
      .split("\n")
      .filter((line) => line.includes("kind is not served"))
      .map((line) => JSON.parse(line) as { kind: string; reason: string });
    expect(refused.map(({ kind }) => kind)).toEqual([path.join(directory, "broken"), `letters.${group} (Letter)`]);
    expect(refused[0]?.reason).toContain("broken/index.ts");
    expect(refused[1]?.reason).toContain(`${path.join(directory, "same")} declares it`);
  });

  it("run beside the built-in ones, with their provider from creation to deletion", async () => {
    const name = uniqueName("letter");
    const file = path.join(shelf, name);
    await apply(letter(name, "on Sunday"));
    await eventually(async () => expect(await ready(name)).toMatchObject({ status: "True" }));
    expect(fs.readFileSync(file, "utf8")).toBe("on Sunday");

    await apply(letter(name, "on Monday"));
    await eventually(() => expect(fs.readFileSync(file, "utf8")).toBe("on Monday"));

    await client.delete(LETTER, name, "default");
    await eventually(async () => expect(await known(client.get(LETTER, name, "default"))).toBeUndefined());
    expect(fs.existsSync(file)).toBe(false);
  });

  it("make objects of other kinds, which keep their spec, are waited for, and are deleted first", async () => {
    const name = uniqueName("envelope");
    const file = path.join(shelf, name);
    const envelope = (text: string) => ({ ...letter(name, text), kind: ENVELOPE.kind });
    const readiness = () => conditionOf(ENVELOPE, name, "Ready");
    await apply(envelope("forbidden"));
    await eventually(async () =>
      expect(await readiness()).toMatchObject({ status: "False", reason: "ResourceFailed" }),
    );
    await apply(envelope("on Sunday"));
    await eventually(async () => expect(await readiness()).toMatchObject({ status: "True" }));
    expect(fs.readFileSync(file, "utf8")).toBe("on Sunday");
    expect((await known(client.get(LETTER, name, "default")))?.spec).toEqual({ text: "on Sunday" });

    await client.delete(ENVELOPE, name, "default");
    await eventually(async () => expect(await known(client.get(ENVELOPE, name, "default"))).toBeUndefined());
    expect(await known(client.get(LETTER, name, "default"))).toBeUndefined();
    expect(fs.existsSync(file)).toBe(false);
  });

  it("run in the SDK's own runtime where they say so, with outputs as inputs", async () => {
    const name = uniqueName("copy");
    const [original, copy] = [path.join(shelf, name), path.join(shelf, `${name}-copy`)];
    const manifest = { ...letter(name, "on Sunday"), kind: COPY.kind };
    await client.apply(manifest, { fieldManager: "test" });
    await eventually(() => expect(fs.readFileSync(copy, "utf8")).toBe(`copy of ${original}`));
    expect(fs.readFileSync(original, "utf8")).toBe("on Sunday");

    await client.delete(COPY, name, "default");
    await eventually(async () => expect(await known(client.get(COPY, name, "default"))).toBeUndefined());
    expect([original, copy].filter((file) => fs.existsSync(file))).toEqual([]);
  });

  it("have the errors of their provider in their conditions, by class", async () => {
    const name = uniqueName("letter");
    await apply(letter(name, "forbidden"));
    await eventually(async () =>
      expect(await ready(name)).toMatchObject({
        status: "False",
        message: expect.stringContaining("spec.text: this text is forbidden"),
      }),
    );
    expect(await conditionOf(LETTER, name, "Stalled")).toMatchObject({ status: "True", reason: "Invalid" });
    await client.delete(LETTER, name, "default");
    await eventually(async () => expect(await known(client.get(LETTER, name, "default"))).toBeUndefined());
  });
});

it("a kind that is renamed leaves its resources to the objects of the new name, as docs/versions.md says", async () => {
  const name = uniqueName("renamed");
  const manifest = letter(name, "old papers");
  const readiness = (type: ResourceType) => conditionOf(type, name, "Ready");
  await apply({ ...manifest, kind: ARCHIVE.kind });
  await eventually(async () => expect(await readiness(ARCHIVE)).toMatchObject({ status: "True" }));
  const before = await known(client.get(CONFIG_MAP, name, "default"));

  // Until the old object is gone, the new one is refused.
  await apply({ ...manifest, kind: RECORD.kind });
  await eventually(async () => expect(await readiness(RECORD)).toMatchObject({ reason: "Conflict" }));
  const annotations = { [DELETION_POLICY_ANNOTATION]: "Orphan" };
  await apply({ ...manifest, kind: ARCHIVE.kind, metadata: { ...manifest.metadata, annotations } });
  await client.delete(ARCHIVE, name, "default");
  await eventually(async () => expect(await known(client.get(ARCHIVE, name, "default"))).toBeUndefined());
  await eventually(async () => expect(await readiness(RECORD)).toMatchObject({ status: "True" }));

  const after = await known(client.get(CONFIG_MAP, name, "default"));
  expect(after?.metadata.uid).toBe(before?.metadata.uid);
  const orphaned = { ...manifest, kind: RECORD.kind, metadata: { ...manifest.metadata, annotations } };
  await apply(orphaned); // it is protected
  await client.delete(RECORD, name, "default");
  await eventually(async () => expect(await known(client.get(RECORD, name, "default"))).toBeUndefined());
});

describe("a deletion that something holds", () => {
  const HELD = "example.com/held";
  const archive = (name: string, text = "old papers"): Manifest => ({ ...letter(name, text), kind: ARCHIVE.kind });
  const configMap = (name: string) => known(client.get(CONFIG_MAP, name, "default"));
  const gone = (name: string) =>
    eventually(async () => expect(await known(client.get(ARCHIVE, name, "default"))).toBeUndefined());
  const told = (name: string, condition: object) =>
    eventually(async () => expect(await conditionOf(ARCHIVE, name, "Ready")).toMatchObject(condition));
  async function made(): Promise<string> {
    const name = uniqueName("archive");
    await apply(archive(name));
    await told(name, { status: "True" });
    return name;
  }
  const orphan = (name: string) =>
    client.apply(
      {
        apiVersion: ARCHIVE.apiVersion,
        kind: ARCHIVE.kind,
        metadata: { name, namespace: "default", annotations: { [DELETION_POLICY_ANNOTATION]: "Orphan" } },
      },
      { fieldManager: "orphan" },
    );

  it("as it is protected, is said with the way out, which allows it", async () => {
    const name = await made();
    await client.delete(ARCHIVE, name, "default");
    await told(name, { reason: "DeletionFailed", message: expect.stringContaining("because it is protected") });
    expect(await configMap(name)).toMatchObject({ data: { text: "old papers" } });
    const { message = "" } = (await conditionOf(ARCHIVE, name, "Ready")) ?? {};
    const command = /kindstack (state unprotect \S+ '[^']+')/.exec(message)?.[1]?.replaceAll("'", "").split(" ") ?? [];
    expect(kindstack(command, stateOf(operator))).toContain("unprotected");
    await gone(name);
    expect(await configMap(name)).toBeUndefined();
  });

  it("by a finalizer of what was made, is said, and over when that goes", async () => {
    const name = await made();
    await client.apply(
      {
        apiVersion: "v1",
        kind: "ConfigMap",
        metadata: { name: `${name}-index`, namespace: "default", finalizers: [HELD] },
      },
      { fieldManager: "archivist" },
    );
    await apply(archive(name, "alone"));
    await told(name, { reason: "Terminating", message: expect.stringContaining(HELD) });
    await client.delete(ARCHIVE, name, "default");
    await told(name, {
      reason: "Deleting",
      message: expect.stringContaining(
        `ConfigMap ${name}-index is being deleted and waits for: its finalizers ${HELD}`,
      ),
    });
    await orphan(name);
    await gone(name);
    expect(await configMap(name)).toMatchObject({ data: { text: "alone" } });
    await client.apply(
      { apiVersion: "v1", kind: "ConfigMap", metadata: { name: `${name}-index`, namespace: "default" } },
      { fieldManager: "archivist" },
    );
    await eventually(async () => expect(await configMap(`${name}-index`)).toBeUndefined());
  });
});

interface WatchLine {
  msg: string;
  kind?: string;
  reason?: string;
  errors?: string[];
}

describe("an edit of a kind", () => {
  /** Makes an edit and waits for what the operator logs about it. */
  async function edit(text: string, file = "letter/index.ts"): Promise<WatchLine> {
    const from = operator.log.length;
    write(file, text);
    return eventually(() => {
      const lines = operator.log
        .slice(from)
        .split("\n")
        .filter((line) => line.includes('"component":"watch"') && line.endsWith("}"))
        .map((line) => JSON.parse(line) as WatchLine);
      expect(lines[0]).toMatchObject({ msg: "edit is seen; checking and loading the kinds" });
      const [outcome] = lines.slice(1).filter(({ msg }) => msg !== "serving an edited kind");
      expect(outcome).toBeDefined();
      return outcome as WatchLine;
    });
  }
  const served = { msg: "edited kind is served", kind: `letters.${group}` };
  const definition = async () =>
    known(
      client.get(await client.resourceType("apiextensions.k8s.io/v1", "CustomResourceDefinition"), `letters.${group}`),
    );
  let name: string;
  let file: string;
  beforeAll(async () => {
    name = uniqueName("letter");
    file = path.join(shelf, name);
    await apply(letter(name, "on Sunday"));
    await eventually(() => expect(fs.readFileSync(file, "utf8")).toBe("on Sunday"));
    await eventually(() => expect(operator.log).toContain("types are checked for the first time"));
  });

  it("updates its objects, and no other kind", async () => {
    expect(await edit(letterModule('spec.text + " at noon"'))).toMatchObject(served);

    await eventually(() => expect(fs.readFileSync(file, "utf8")).toBe("on Sunday at noon"));
    await eventually(async () => expect(await ready(name)).toMatchObject({ status: "True" }));
    expect(await operator.metric("kindstack_objects", { kind: `letters.${group}` })).toBe(1);
    const lines = operator.log.split("\n").filter((line) => line.includes(served.msg));
    expect(lines).toHaveLength(1);
  });

  it("of its provider is in force for its objects", async () => {
    expect(
      await edit(
        PROVIDER.replace("writeFileSync(id, news.text)", 'writeFileSync(id, news.text + "!")'),
        "letter/provider.ts",
      ),
    ).toMatchObject(served);

    await apply(letter(name, "on Monday"));

    await eventually(() => expect(fs.readFileSync(file, "utf8")).toBe("on Monday at noon!"));
  });

  it("with a type error is reported by file and line, and changes nothing", async () => {
    const line = await edit(letterModule("spec.txt"));

    expect(line.msg).toBe("edit has type errors; the kinds before it are served");
    expect(line.errors).toEqual([
      expect.stringMatching(
        new RegExp(`^${path.join(directory, "letter/index.ts")}:\\d+: Property 'txt' does not exist`),
      ),
    ]);
    await apply(letter(name, "on Tuesday"));
    await eventually(() => expect(fs.readFileSync(file, "utf8")).toBe("on Tuesday at noon!"));
  });

  it("that the API server refuses is reported in its words, and changes nothing", async () => {
    const before = await definition();
    const line = await edit(letterModule("spec.text").replace('version: "v1"', 'version: "v2"'));

    expect(line).toMatchObject({ msg: "edited kind is refused; the one before it is served", kind: served.kind });
    expect(line.reason).toContain('status.storedVersions[0]: Invalid value: "v1"');
    expect((await definition())?.metadata.generation).toBe(before?.metadata.generation);
    await apply(letter(name, "on Friday"));
    await eventually(() => expect(fs.readFileSync(file, "utf8")).toBe("on Friday at noon!"));
  });

  it("that was refused is not what a process runs that starts again", async () => {
    const processes = operator.children().filter(({ command }) => command.includes("packages/child.js"));
    for (const { pid } of processes) process.kill(pid, "SIGKILL");
    await apply(letter(name, "on Saturday"));
    await eventually(async () => {
      const message = expect.stringContaining("its files have changed since the operator loaded them");
      expect(await conditionOf(LETTER, name, "Synced")).toMatchObject({ reason: "ProgramFailed", message });
    });
    expect(fs.readFileSync(file, "utf8")).toBe("on Friday at noon!");
  });

  it("changes the schema, also after one that was refused", async () => {
    const colour = "spec: Type.Object({ text: Type.String(), colour: Type.Optional(Type.String()) })";
    const edited = letterModule('spec.text + (spec.colour ?? "")').replace(
      "spec: Type.Object({ text: Type.String() })",
      colour,
    );
    expect(await edit(edited)).toMatchObject(served);

    await apply({ ...letter(name, "in "), spec: { text: "in ", colour: "red" } });

    await eventually(() => expect(fs.readFileSync(file, "utf8")).toBe("in red!"));
  });
});
