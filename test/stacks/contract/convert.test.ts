import Type from "typebox";
import { describe, expect, it } from "vitest";
import type { Manifest } from "../../../providers/kubernetes/client";
import { apiVersionsOf, convertObject } from "../../../stacks/contract/convert";
import { customResourceDefinition } from "../../../stacks/contract/crd";
import { type AnyKind, defineKind } from "../../../stacks/contract/kind";
import { admissionRules } from "../../../stacks/contract/rbac";
import { type Convertible, servedVersion } from "../../../stacks/contract/served-version";
import { tenant } from "../../../stacks/kinds/tenant/kind";
import { declaredObjects } from "../../../stacks/up/objects";

const version = (name: string, step: number) =>
  servedVersion({
    version: name,
    spec: Type.Object({ size: Type.Integer() }),
    toStored: ({ spec, annotations }) => ({ spec: { length: spec.size + step }, annotations }),
    fromStored: ({ spec, annotations }: Convertible<{ length: number }>) => ({
      spec: { size: spec.length - step },
      annotations: { ...annotations, from: "stored" },
    }),
  });
const rod: AnyKind = defineKind({
  ...tenant,
  group: "example.com",
  version: "v3",
  kind: "Rod",
  plural: "rods",
  spec: Type.Object({ length: Type.Integer() }),
  status: Type.Object({}),
  program: () => {},
  report: () => ({}),
  validate: () => {},
  columns: [],
  capabilities: { versions: [version("v1", 1), version("v2", 2)] },
});
const rodIn = (name: string, spec: object): Manifest => ({
  apiVersion: `example.com/${name}`,
  kind: "Rod",
  metadata: { name: "rod", labels: { a: "b" } },
  spec,
});

describe("an object", () => {
  it("is converted to the stored version, from it, and between others by way of it", async () => {
    expect(await convertObject(rod, rodIn("v1", { size: 5 }))).toEqual(rodIn("v3", { length: 6 }));
    expect(await convertObject(rod, rodIn("v3", { length: 6 }), "example.com/v2")).toEqual({
      ...rodIn("v2", { size: 4 }),
      metadata: { name: "rod", labels: { a: "b" }, annotations: { from: "stored" } },
    });
    expect((await convertObject(rod, rodIn("v1", { size: 5 }), "example.com/v2")).spec).toEqual({ size: 4 });
    const same = rodIn("v2", { size: 5 });
    expect(await convertObject(rod, same, "example.com/v2")).toBe(same);
  });

  it("of a version that is not served is refused, with those that are", async () => {
    await expect(convertObject(rod, rodIn("v4", {}))).rejects.toThrow(
      "apiVersion: example.com/v4 is not served; it must be example.com/v3 or example.com/v1 or example.com/v2",
    );
    expect(apiVersionsOf(rod)).toEqual(["example.com/v3", "example.com/v1", "example.com/v2"]);
  });

  it("may be declared for `pulumi up` in any of them", async () => {
    const manifest = rodIn("v1", { size: 5 }) as Manifest & { metadata: { name: string } };
    const [declared] = await declaredObjects([{ manifest, file: "rod.yaml" }], [rod], "stack", "default");
    expect(declared?.object).toMatchObject({ apiVersion: "example.com/v3", spec: { length: 6 } });
  });
});

describe("the definition", () => {
  const servedIn = (definition: Manifest) =>
    (definition.spec as { versions: { name: string; served: boolean; storage: boolean }[] }).versions.map(
      ({ name, served, storage }) => [name, served, storage],
    );

  it("serves all versions, and leaves the webhook to the operator", () => {
    const definition = customResourceDefinition(rod);
    expect(servedIn(definition)).toEqual([
      ["v3", true, true],
      ["v1", true, false],
      ["v2", true, false],
    ]);
    expect(definition.spec).not.toHaveProperty("conversion");
  });

  it("may be patched by an operator that serves admission, for no other kind", () => {
    const rules = admissionRules([tenant, rod], "role");
    expect(rules).toContainEqual({
      apiGroups: ["apiextensions.k8s.io"],
      resources: ["customresourcedefinitions"],
      resourceNames: ["rods.example.com"],
      verbs: ["patch"],
    });
  });
});
