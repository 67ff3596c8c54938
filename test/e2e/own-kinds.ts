import fs from "node:fs";
import path from "node:path";
import { afterAll } from "vitest";
import type { Manifest, ResourceType } from "../../providers/kubernetes/client";
import { DEFINITION_TYPE } from "../../stacks/contract/crd";
import { useDirectory } from "../directories";
import { COMPILER_OPTIONS } from "./compiler-options";
import { untilGone } from "./conditions";
import { objectOf, uniqueName } from "./manifests";
import { remove } from "./objects";
import { type RunSettings, type TestOperator, useOperator } from "./operator";

const ROOT = path.resolve(__dirname, "../..");

/** The first lines of a module with kinds that make Kubernetes objects. */
export const IMPORTS = `import { defineKind, Type } from "kindstack";
import { KubernetesObject } from "kindstack/providers/kubernetes";
`;

/** Kinds that a test file writes, in a folder from where they import the package as if that was installed. */
export class OwnKinds {
  readonly group: string;
  /** Of all that the file writes. */
  readonly directory = useDirectory();
  readonly #kinds: readonly string[];

  /** @param kinds their names, such as `Note` */
  constructor(...kinds: string[]) {
    this.#kinds = kinds;
    this.group = `${uniqueName(`${kinds[0]?.toLowerCase()}s`)}.example.com`;
    fs.symlinkSync(path.join(ROOT, "node_modules"), this.at("node_modules"));
  }

  at(...names: string[]): string {
    return path.join(this.directory, ...names);
  }

  /** @param file within the folder, which need not be there. @returns its path */
  write(file: string, text: string): string {
    fs.mkdirSync(path.dirname(this.at(file)), { recursive: true });
    fs.writeFileSync(this.at(file), text);
    return this.at(file);
  }

  /** Writes a package of kinds in TypeScript. @returns its folder */
  writePackage(folder: string, text: string): string {
    this.write(`${folder}/tsconfig.json`, JSON.stringify({ compilerOptions: COMPILER_OPTIONS }));
    return path.dirname(this.write(`${folder}/index.ts`, text));
  }

  /** The source of a kind that owns ConfigMaps. @param rest its spec, its program and what differs from the usual */
  definition(kind: string, rest: string): string {
    const name = kind.toLowerCase();
    return `defineKind({
  scope: "Namespaced", directory: __dirname,
  ...{ group: "${this.group}", version: "v1", kind: "${kind}", plural: "${name}s", singular: "${name}", description: "" },
  ...{ status: Type.Object({}), columns: [], owns: [{ apiVersion: "v1", kind: "ConfigMap" }], report: () => ({}) },
  ${rest}
})`;
  }

  type(kind: string): ResourceType {
    return { apiVersion: `${this.group}/v1`, kind, plural: `${kind.toLowerCase()}s`, namespaced: true };
  }

  object(kind: string, name: string, spec: object, namespace = "default"): Manifest {
    return objectOf(this.type(kind), name, namespace, { spec });
  }

  /** An operator for the tests of the file, after which the kinds and all their objects are gone. */
  useOperator(settings: RunSettings): TestOperator {
    const operator = useOperator(settings);
    afterAll(() => this.removeDefinitions());
    return operator;
  }

  async removeDefinitions(): Promise<void> {
    const definitions = this.#kinds.map((kind) => objectOf(DEFINITION_TYPE, `${kind.toLowerCase()}s.${this.group}`));
    await Promise.all(definitions.map(remove));
    await Promise.all(definitions.map(untilGone));
  }
}
