import fs from "node:fs";
import path from "node:path";
import { COMPILER_OPTIONS } from "./compiler-options";

const ROOT = path.resolve(__dirname, "../..");

/** A provider of files, and the class of a plugin's resource. */
const provider = (served: string) => `import { rmSync, writeFileSync } from "node:fs";
import { CustomResource, type CustomResourceOptions } from "@pulumi/pulumi/resource";
import { defineProvider, DynamicResource } from "kindstack";

interface Inputs { file: string }

export const { stub, provider } = defineProvider<Inputs, Inputs>(${JSON.stringify(served)}, {
  check: async (_, news) => ({ inputs: news, failures: [] }),
  diff: async () => ({ changes: false }),
  async create(inputs) {
    if (inputs.file.endsWith("refused")) throw new Error("the shelf is full");
    writeFileSync(inputs.file, "");
    return { id: inputs.file, outs: inputs };
  },
  read: async (id, outs) => ({ id, props: outs }),
  update: async (_id, _olds, news) => ({ outs: news }),
  delete: async (id) => rmSync(id, { force: true }),
  release: async () => {},
});

export class Letter extends DynamicResource {
  constructor(name: string, file: string) {
    super({ module: "unaware", name: "Letter", stub }, name, { file });
  }
}

export class Key extends CustomResource {
  constructor(name: string, inputs: { label: string; length: number }, options?: CustomResourceOptions) {
    super("keyring:index:Key", name, { ...inputs, keyId: undefined }, options);
  }
}
`;

/** What Pulumi's CLI finds of the provider: a deletion needs no more. */
const SERVED = `exports.provider = { delete: async (id) => require("node:fs").rmSync(id) };`;

const kinds = (group: string, shelf: string) => `import { ComponentResource } from "@pulumi/pulumi/resource";
import { defineKind, Type } from "kindstack";
import { KubernetesObject } from "kindstack/providers/kubernetes";
import { Key, Letter, provider, stub } from "./provider";

const common = {
  group: ${JSON.stringify(group)}, version: "v1", scope: "Namespaced", description: "", status: Type.Object({}), columns: [],
  spec: Type.Object({ length: Type.Integer({ default: 16 }), letters: Type.Optional(Type.Array(Type.String())) }),
  owns: [{ apiVersion: "v1", kind: "ConfigMap" }], directory: __dirname, report: () => ({}),
} as const;
const write = (name: string, letters: string[] = []) =>
  letters.forEach((letter) => new Letter(name + "/" + letter, ${JSON.stringify(shelf)} + "/" + name + letter));

export const mixed = defineKind({
  ...common, kind: "Mixed", plural: "mixeds", singular: "mixed",
  program({ metadata: { name, namespace = "" }, spec: { length, letters } }, { owner }) {
    const manifest = { apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace }, data: {} };
    new KubernetesObject(name + "/map", { owner, manifest });
    const key = new Key(name + "/key", { label: name, length }, { deleteBeforeReplace: true });
    write(name, letters);
    const parent = new ComponentResource("unaware:index:Group", name + "/group");
    key.id.apply(() => new Key(name + "/later", { label: name, length: 16 }, { parent }));
  },
  capabilities: { sdkRuntime: true, providers: [{ stub, provider }] },
});
export const plain = defineKind({
  ...common, kind: "Plain", plural: "plains", singular: "plain",
  program: ({ metadata, spec }) => write(metadata.name, spec.letters),
  capabilities: { providers: [{ stub, provider }] },
});
export const lone = defineKind({
  ...common, kind: "Lone", plural: "lones", singular: "lone",
  program: ({ metadata: { name }, spec: { length } }) => void new Key(name + "/key", { label: name, length }),
  capabilities: { sdkRuntime: true },
});
`;

/**
 * Writes kinds whose resources do not know of the operator, nor depend on each other: of a plugin, and of a provider that puts files
 * on a shelf.
 *
 * @returns the plurals of the kinds
 */
export function writeUnawareKinds(folder: string, { group, shelf }: { group: string; shelf: string }): string[] {
  for (const made of [folder, shelf]) fs.mkdirSync(made, { recursive: true });
  for (const shared of ["node_modules", "examples/plugins"]) {
    fs.symlinkSync(path.join(ROOT, shared), path.join(folder, path.basename(shared)));
  }
  const files = {
    "package.json": JSON.stringify({ name: "unaware", version: "1.0.0" }),
    "tsconfig.json": JSON.stringify({ compilerOptions: COMPILER_OPTIONS }),
    "served.cjs": SERVED,
    "provider.ts": provider(path.join(folder, "served.cjs")),
    "index.ts": kinds(group, shelf),
  };
  for (const [name, text] of Object.entries(files)) fs.writeFileSync(path.join(folder, name), text);
  return ["mixeds", "plains", "lones"];
}
