import Type from "typebox";
import { describe, expect, it } from "vitest";
import { customResourceDefinition } from "../../../stacks/contract/crd";
import { type AnyKind, kindName } from "../../../stacks/contract/kind";
import type { Convertible } from "../../../stacks/contract/served-version";
import { kinds } from "../../../stacks/kinds/index";
import { memcached } from "../../../stacks/kinds/memcached/kind";

interface Schema {
  type?: string;
  properties?: Record<string, Schema>;
  additionalProperties?: Schema | boolean;
  items?: Schema;
  required?: string[];
  [extension: string]: unknown;
}

interface Definition {
  names: { kind: string; plural: string };
  versions: {
    schema: { openAPIV3Schema: Schema };
    subresources: object;
    additionalPrinterColumns: { name: string; jsonPath: string }[];
  }[];
}

function definitionOf(kind: AnyKind) {
  const crd = customResourceDefinition(kind);
  const [version] = (crd.spec as Definition).versions as [Definition["versions"][number]];
  return { crd, schema: version.schema.openAPIV3Schema };
}

/** Every node of a schema with its path. */
function* nodes(schema: Schema, path = "$"): Generator<[string, Schema]> {
  yield [path, schema];
  for (const [name, property] of Object.entries(schema.properties ?? {})) yield* nodes(property, `${path}.${name}`);
  if (schema.items !== undefined) yield* nodes(schema.items, `${path}[]`);
  if (typeof schema.additionalProperties === "object") yield* nodes(schema.additionalProperties, `${path}{}`);
}

/** What the API server accepts in a node of a structural schema (`apiextensions.k8s.io/v1`). */
const STRUCTURAL =
  /^(type|format|title|description|default|example|nullable|properties|additionalProperties|items|required|enum|pattern|(min|max)(imum|Length|Items|Properties)|exclusive(Min|Max)imum|multipleOf|uniqueItems|x-kubernetes-.*)$/;

/* What each CRD holds is in deploy/install.yaml; here is what is so for all kinds, those of others too. */
describe.each(kinds.map((kind) => [kindName(kind), kind] as const))("the CRD of %s", (_, kind) => {
  const { crd, schema } = definitionOf(kind);

  it("is structural: each node has a type and nothing that the API server refuses", () => {
    for (const [path, node] of nodes(schema)) {
      // An amount or a port may be written as a number or as a text; the API server knows that as a type of its own.
      const either = node["x-kubernetes-int-or-string"] === true;
      if (either) expect(node.anyOf, path).toEqual([{ type: "integer" }, { type: "string" }]);
      else expect([node.type, node.anyOf], path).toEqual([expect.any(String), undefined]);
      expect(
        Object.keys(node).filter((key) => key !== "anyOf" && !STRUCTURAL.test(key)),
        path,
      ).toEqual([]);
      if (node.properties !== undefined) expect(node.additionalProperties, path).toBeUndefined();
      if (node.type === "array") expect(node.items, path).toEqual(expect.any(Object));
      expect(node.uniqueItems, path).toBeUndefined(); // forbidden by the API server; a set is a list type
    }
  });

  it("requires only properties that exist", () => {
    for (const [path, { required = [], properties = {} }] of nodes(schema)) {
      expect(
        required.filter((property) => !(property in properties)),
        path,
      ).toEqual([]);
    }
  });

  it("bounds every string and list of the spec, so that the cost of its rules is bounded", () => {
    for (const [path, node] of nodes(schema.properties?.spec ?? {})) {
      if (node.type === "string" && node.enum === undefined) expect(node.maxLength, path).toEqual(expect.any(Number));
      if (node.type === "array") expect(node.maxItems, path).toEqual(expect.any(Number));
    }
  });

  it("is plain data that survives JSON", () => {
    expect(JSON.parse(JSON.stringify(crd))).toEqual(crd);
  });
});

const served = (name: string, own: object) => ({
  version: name,
  spec: Type.Object({ size: Type.Integer() }),
  toStored: (object: Convertible<unknown>) => object,
  fromStored: (object: Convertible<unknown>) => object,
  ...own,
});

it("a served version has its own columns, or those that are the same in all versions", () => {
  const column = (name: string, jsonPath: string) => ({ name, jsonPath, type: "string", priority: 1 }) as const;
  const own = [column("Size", ".spec.size")];
  const kind = {
    ...memcached,
    categories: ["caches"],
    columns: [column("Image", ".spec.image"), column("Pods", ".status.pods")],
    capabilities: { versions: [served("v1", { columns: own }), served("v2", {})] },
  } as AnyKind;
  const { names, versions } = customResourceDefinition(kind).spec as Definition;
  expect(names).toMatchObject({ categories: ["kindstack", "caches"] });
  const shown = versions.map(({ additionalPrinterColumns: all }) => all.slice(0, -6));
  expect(shown).toEqual([kind.columns, own, [kind.columns[1]]]);
});

it("a served version has the scale subresource that it names, and no other", () => {
  const scale = { specReplicasPath: ".spec.size", statusReplicasPath: ".status.size" };
  const kind = { ...memcached, capabilities: { versions: [served("v1", { scale }), served("v2", {})] } } as AnyKind;
  const { versions } = customResourceDefinition(kind).spec as { versions: { subresources: object }[] };
  expect(versions.map(({ subresources }) => subresources)).toEqual([
    { status: {} },
    { status: {}, scale },
    { status: {} },
  ]);
});
