import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll } from "vitest";
import type { ResourceType } from "../../providers/kubernetes/client";
import { uniqueName } from "./manifests";

/*
 * A package whose code would end the process in which it runs, or hold it. Its kinds run the same code: as a plain program,
 * and in the SDK's own runtime.
 */

const ROOT = path.resolve(__dirname, "../..");

/** What an object of the package does by its mode, and the reason that it has then. */
export const MISTAKES = {
  rejection: "InternalError",
  timer: "InternalError",
  exit: "ProgramFailed",
  abort: "ProgramFailed",
  loop: "ProgramTimedOut",
  hang: "ProgramTimedOut",
  memory: "OutOfMemory",
};

/** Writes the package into a folder, for the tests of one file. */
export function useHostilePackage() {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), "kindstack-package-"));
  const group = `${uniqueName("package")}.example.com`;
  const typeOf = (kind: string): ResourceType => ({
    apiVersion: `${group}/v1`,
    kind,
    plural: `${kind.toLowerCase()}s`,
    namespaced: true,
  });
  const folder = path.join(directory, "odd");
  beforeAll(() => {
    fs.mkdirSync(folder);
    fs.symlinkSync(path.join(ROOT, "node_modules"), path.join(directory, "node_modules"));
    fs.writeFileSync(path.join(folder, "package.json"), JSON.stringify({ name: "odd", main: "index.js" }));
    fs.writeFileSync(path.join(folder, "index.js"), moduleOf(group));
  });
  afterAll(() => fs.rmSync(directory, { recursive: true, force: true }));
  return { folder, odd: typeOf("Odd"), oddSdk: typeOf("Oddsdk") };
}

const moduleOf = (group: string) => `
const { defineKind, defineProvider, DynamicResource, Type } = require("kindstack");
const { KubernetesObject } = require("kindstack/providers/kubernetes");
const leaked = [];
const act = async (mode, name) => {
  const fail = () => { throw new Error("thrown by " + name); };
  if (mode === "rejection") void Promise.reject(new Error("thrown by " + name));
  if (mode === "timer") { setTimeout(fail, 0); await new Promise((resolve) => setTimeout(resolve, 20)); }
  if (mode === "late") setTimeout(fail, 1_000);
  if (mode === "exit") process.exit(1);
  if (mode === "abort") process.abort();
  if (mode === "loop") for (;;);
  if (mode === "hang") await new Promise(() => {});
  if (mode === "memory") for (const all = []; ; ) all.push(Buffer.alloc(2 ** 24, 1));
  if (mode === "leak") leaked.push(Buffer.alloc(5e7, 1));
};
const { stub, provider } = defineProvider("odd", {
  check: async (_, inputs) => ({ inputs, failures: [] }),
  diff: async (_, olds, news) => ({ changes: olds.mode !== news.mode }),
  create: async (inputs) => ({ id: "odd", outs: inputs }),
  read: async (id, outs) => ({ id, props: outs }),
  update: async (_, __, news) => ({ outs: news }),
  delete: (_, { mode }) => act(mode),
  release: (_, { mode }) => act(mode),
});
class Thing extends DynamicResource {
  constructor(name, inputs) { super({ module: "odd", name: "Thing", stub }, name, inputs); }
}
const define = (kind, capabilities) => defineKind({
  group: ${JSON.stringify(group)}, version: "v1", kind, plural: kind.toLowerCase() + "s", singular: kind.toLowerCase(),
  scope: "Namespaced", description: "", columns: [], owns: [{ apiVersion: "v1", kind: "ConfigMap" }], directory: __dirname,
  spec: Type.Object({ mode: Type.String(), where: Type.String() }), status: Type.Object({}), capabilities,
  validate({ spec: { mode, where } }) { if (where === "validate") act(mode); },
  report({ spec: { mode, where } }) { if (where === "report") act(mode); return {}; },
  async program({ metadata: { name, namespace }, spec: { mode, where } }, { owner }) {
    if (where === "program") await act(mode, name);
    if (where === "delete") new Thing(name, { mode });
    new KubernetesObject(name, { owner, manifest: { apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace }, data: { mode } } });
  },
});
exports.odd = define("Odd", { providers: [{ stub, provider }] });
exports.oddsdk = define("Oddsdk", { sdkRuntime: true });
`;
