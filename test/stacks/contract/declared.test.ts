import Type from "typebox";
import { describe, expect, it } from "vitest";
import { parseDeclared, parseLive } from "../../../stacks/contract/declared";
import type { AnyKind } from "../../../stacks/contract/kind";
import { servedVersion } from "../../../stacks/contract/served-version";
import { podSet } from "../../../stacks/kinds/podset/kind";
import { liveObject } from "../../objects";

const part = Type.Object({ port: Type.Integer({ default: 80 }) });
const spec = Type.Object({
  size: Type.Integer({ default: 1 }),
  parts: Type.Array(part, { default: [] }),
  labels: Type.Optional(Type.Record(Type.String(), Type.String())),
});
const versions = [
  servedVersion({
    version: "v1alpha1",
    spec: Type.Object({ pods: Type.Integer({ maximum: 9, default: 3 }) }),
    toStored: ({ spec: { pods }, annotations }) => ({ spec: { size: pods }, annotations }),
    fromStored: ({ spec: { size }, annotations }) => ({ spec: { pods: size }, annotations }),
  }),
];
const kind = { ...podSet, spec, validate: undefined, capabilities: { versions } } as unknown as AnyKind;
const parse = (given: object, apiVersion = "batch.tutorial.kubebuilder.io/v1") =>
  parseDeclared(kind, liveObject({ apiVersion, kind: "PodSet", spec: given }));

describe("an object that a file declares", () => {
  it("has the schema's defaults, and stays as it was itself", async () => {
    const given = { parts: [{}], labels: { any: "key" } };
    expect((await parse(given)).spec).toEqual({ size: 1, parts: [{ port: 80 }], labels: { any: "key" } });
    expect(given.parts).toEqual([{}]);
  });

  it.each([
    [{ sise: 2 }, "spec.sise: there is no such field"],
    [{ parts: [{}, { prot: 81 }] }, "spec.parts.1.prot: there is no such field"],
    [{ sise: 2, size: "2" }, "spec.sise: there is no such field"],
    [{ size: "2" }, 'spec.size: "2" must be integer'],
    [{ parts: "none" }, 'spec.parts: "none" must be array'],
  ])("is refused with the first wrong field: %j", async (given, message) => {
    await expect(parse(given)).rejects.toMatchObject({ reason: "Invalid", message });
  });

  it.each([
    [
      { size: null, parts: null, labels: null },
      { size: 1, parts: [] },
    ],
    [
      { parts: [{ port: null }], labels: { a: null, b: "c" } },
      { size: 1, parts: [{ port: 80 }], labels: { b: "c" } },
    ],
  ])("is read without what is null, as by the API server: %j", async (given, read) => {
    expect((await parse(given)).spec).toEqual(read);
  });

  const OPEN = { "x-kubernetes-preserve-unknown-fields": true };
  const [A, B] = [Type.Object({ a: Type.String() }), Type.Object({ b: Type.Integer() })];
  const withField = (field: Type.TSchema) => ({ ...kind, spec: Type.Object({ field }), capabilities: {} }) as AnyKind;
  const parseField = async (schema: Type.TSchema, field: unknown) => {
    const object = { apiVersion: "batch.tutorial.kubebuilder.io/v1", kind: "PodSet", metadata: { name: "a" } };
    return (await parseDeclared(withField(schema), liveObject({ ...object, spec: { field } }))).spec;
  };

  it.each<[string, Type.TSchema, unknown]>([
    ["null where the schema has it", Type.Union([A, Type.Null()]), null],
    [
      "null in a field that may be missing",
      Type.Object({ a: Type.Optional(Type.Union([B, Type.Null()])) }),
      { a: null },
    ],
    ["fields of an object that keeps unknown ones", Type.Object({ a: A }, OPEN), { a: { a: "x" }, c: { d: null } }],
    ["several forms of a union at once", Type.Union([A, B]), { a: "x", b: 1 }],
    ["the second form of a union", Type.Array(Type.Union([A, B])), [{ b: 1 }]],
    ["anything", Type.Unknown(), { a: [null, { b: null }] }],
  ])("is read with %s", async (_, schema, field) => {
    expect(await parseField(schema, field)).toEqual({ field });
  });

  it("is refused with an unknown field inside of an object that keeps unknown ones", async () => {
    await expect(parseField(Type.Object({ a: A }, OPEN), { a: { a: "x", z: 1 } })).rejects.toMatchObject({
      message: "spec.field.a.z: there is no such field",
    });
  });

  it("may be in another version, by whose schema it is read before it is converted", async () => {
    const old = "batch.tutorial.kubebuilder.io/v1alpha1";
    expect(await parse({}, old)).toMatchObject({
      apiVersion: "batch.tutorial.kubebuilder.io/v1",
      spec: { size: 3, parts: [] },
    });
    await expect(parse({ pods: 10 }, old)).rejects.toMatchObject({ message: "spec.pods: 10 must be <= 9" });
    await expect(parse({ size: 1 }, old)).rejects.toMatchObject({ message: "spec.size: there is no such field" });
    await expect(parse({}, "batch.tutorial.kubebuilder.io/v2")).rejects.toMatchObject({
      message: expect.stringMatching("v2 is not served; it must be .*/v1 or .*/v1alpha1"),
    });
  });
});

describe("an object of the cluster", () => {
  const parseStored = (given: object, version: string) =>
    parseLive(
      kind,
      liveObject({ apiVersion: `batch.tutorial.kubebuilder.io/${version}`, kind: "PodSet", spec: given }),
    );

  it("is read as an operator does: a field that the schema does not have is dropped, which its next change is told of", async () => {
    const { object, refused } = await parseStored({ sise: 2, parts: [{ prot: 81 }] }, "v1");
    expect(object.spec).toEqual({ size: 1, parts: [{ port: 80 }] });
    expect(refused).toEqual(["spec.sise: there is no such field", "spec.parts.0.prot: there is no such field"]);
  });

  it("is not validated in the version in which it is stored, and is in that which the program sees", async () => {
    const { object, refused } = await parseStored({ pods: 10 }, "v1alpha1");
    expect([object.apiVersion, object.spec, refused]).toEqual([
      "batch.tutorial.kubebuilder.io/v1",
      { size: 10, parts: [] },
      [],
    ]);
    await expect(parseStored({ pods: "ten" }, "v1alpha1")).rejects.toMatchObject({ reason: "Invalid" });
  });
});
