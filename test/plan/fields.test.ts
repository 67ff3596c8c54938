import { describe, expect, it } from "vitest";
import type { Properties } from "../../providers/provider";
import {
  adoptedFields,
  appliedFields,
  changedFields,
  changedPaths,
  createdFields,
  givenFields,
} from "../../src/plan/fields";
import { acme, liveObject, marksOf } from "../objects";

const change = (before: Properties, after: Properties, outputs: Properties = before) => ({
  urn: "urn",
  type: "type",
  name: "name",
  operation: "update" as const,
  old: { inputs: before, outputs },
  inputs: after,
});

it("the path of a field has names and indexes, and quotes what is neither a name nor an index", () => {
  const before = { list: [{ a: 1 }], labels: { "example.com/a": 1, "8080": 1, plain_name: 1 } };
  const after = { list: [{ a: 2 }], labels: { "example.com/a": 2, "8080": 2, plain_name: 2 } };

  expect(changedPaths(before, after).sort()).toEqual([
    "labels.plain_name",
    'labels["8080"]',
    'labels["example.com/a"]',
    "list[0].a",
  ]);
});

describe("the fields that change", () => {
  it("are those of the program's inputs, without what belongs to the provider", () => {
    const before = { owner: { uid: "a" }, __provider: "a", table: "a", values: { age: 1, name: "x" } };
    const after = { owner: { uid: "b" }, __provider: "b", table: "a", values: { age: 2, country: "y" } };

    expect(changedFields(change(before, after))).toEqual([
      { path: "values.age", before: 1, after: 2 },
      { path: "values.name", before: "x" },
      { path: "values.country", after: "y" },
    ]);
  });

  it("of a Secret are hidden where they hold its data", () => {
    const secret = (data: object) => ({ manifest: { apiVersion: "v1", kind: "Secret", metadata: {}, ...data } });

    expect(
      changedFields(change(secret({ data: { a: "x" }, type: "t" }), secret({ data: { b: "y" }, type: "u" }))),
    ).toEqual([
      { path: "data.a", before: "[secret]" },
      { path: "data.b", after: "[secret]" },
      { path: "type", before: "t", after: "u" },
    ]);
  });

  describe.each<[string, (before: Properties, after: Properties) => ReturnType<typeof changedFields>]>([
    ["inputs", (before, after) => changedFields(change(before, after))],
    ["a manifest", (before, after) => changedFields(change({ manifest: before }, { manifest: after }))],
    [
      "a live object",
      (before, after) =>
        changedFields(
          change({ manifest: after }, { manifest: after }, { manifest: after, drifted: true }),
          before as never,
        ),
    ],
  ])("of a list of objects in %s", (_, fieldsOf) => {
    const [a, b, c] = ["a", "b", "c"].map((name) => ({ name, port: 1 })) as [object, object, object];
    const [x, y, z] = [{ host: "x" }, { host: "y" }, { host: "z" }];

    it.each<[string, object[], object[], object[]]>([
      ["that grows at its end", [a], [a, b], [{ path: "items[1]", after: b }]],
      ["that grows at its beginning", [b], [a, b], [{ path: "items[0]", after: a }]],
      ["that loses one", [a, b, c], [a, c], [{ path: "items[1]", before: b }]],
      [
        "that loses one and changes another",
        [a, b, c],
        [a, { ...c, port: 2 }],
        [
          { path: "items[1].port", before: 1, after: 2 },
          { path: "items[1]", before: b },
        ],
      ],
      ["without names that grows in its middle", [x, z], [x, y, z], [{ path: "items[1]", after: y }]],
      ["without names that loses its first", [x, y, z], [y, z], [{ path: "items[0]", before: x }]],
      [
        "without names that changes and grows",
        [x, y],
        [x, z, y, x],
        [
          { path: "items[1].host", before: "y", after: "z" },
          { path: "items[2]", after: y },
          { path: "items[3]", after: x },
        ],
      ],
      ["that becomes empty", [a], [], [{ path: "items[0]", before: a }]],
      ["where names are the same", [b, a, a], [b, a], [{ path: "items[2]", before: a }]],
      [
        "that gets names",
        [{ port: 1 }],
        [a, b],
        [
          { path: "items[0].name", after: "a" },
          { path: "items[1]", after: b },
        ],
      ],
    ])("are those of the items %s", (_, before, after, fields) => {
      expect(fieldsOf({ items: before }, { items: after })).toEqual(fields);
    });
  });

  it("of a drifted object are those of the manifest that differ in the cluster, and no others", () => {
    const manifest = { spec: { replicas: 1, args: ["a", "b"] } };
    const live = { spec: { replicas: 2, args: ["a", "c"], clusterIP: "10.0.0.1" }, status: {} };
    const drifted = change({ manifest }, { manifest }, { manifest, drifted: true });

    expect(changedFields(drifted, live as never)).toEqual([
      { path: "spec.replicas", before: 2, after: 1 },
      { path: "spec.args[1]", before: "c", after: "b" },
    ]);
  });

  it("are told as a whole where a list is not of objects alone", () => {
    const before = { grows: [1], changes: [1, 2], mixed: [{ a: 1 }, 2], longer: [{ a: 1 }, 2], text: "a" };
    const after = { grows: [1, 2], changes: [1, 3], mixed: [{ a: 2 }, 2], longer: [{ a: 1 }, 2, 3], text: ["a"] };
    expect(changedPaths(before, after)).toEqual(["grows", "changes", "mixed", "longer", "text"]);
  });

  it("are those of the state alone where no drift was found, or nothing is known of what is alive", () => {
    const [manifest, live] = [{ spec: { replicas: 1 } }, { spec: { replicas: 2 } }];
    expect(changedFields(change({ manifest }, { manifest }), live as never)).toEqual([]);
    expect(changedFields(change({ manifest }, { manifest }, { manifest, drifted: true }))).toEqual([]);
  });

  it("are what the program gives otherwise, whatever a refresh has found", () => {
    const drifted = change(
      { values: { age: 1, name: "x" } },
      { values: { age: 1, name: "y" } },
      { values: { age: 3 } },
    );
    expect(givenFields(drifted)).toEqual([{ path: "values.name", before: "x", after: "y" }]);
    const { old: _, ...created } = drifted;
    expect(givenFields(created)).toEqual([]);
  });
});

describe("secrets", () => {
  const secret = "[secret]";

  it("that differ are told by their paths, though both sides read the same", () => {
    const env = [{ value: secret }, { value: secret }];
    const given = (more: object) => ({ manifest: { env, ...more }, values: { password: secret } });
    const both = change(given({ gone: { a: 1 }, come: null }), given({ gone: null, come: { a: 1 } }));
    const others = [
      { path: "gone", before: { a: 1 }, after: null },
      { path: "come", before: null, after: { a: 1 } },
    ];
    const pair = { before: secret, after: secret };
    const differsAt = (path: readonly unknown[]) =>
      ["manifest.env.1.value", "values.password"].includes(path.join(".")) && path[2] !== "1";
    expect(changedFields({ ...both, differsAt })).toEqual([
      ...others,
      { path: "env[1].value", ...pair },
      { path: "values.password", ...pair },
    ]);
    expect(changedFields({ ...both, differsAt: () => false })).toEqual(others);
    expect(changedFields(both)).toEqual(others);
  });

  it("that became one, or are one no longer, hide what they were", () => {
    const before = { a: "x", b: secret, c: ["z"] };
    const after = { a: secret, b: "y", c: ["z", secret], d: [secret] };
    const pair = { before: secret, after: secret };
    expect(changedFields({ ...change(before, after), differsAt: () => true })).toEqual([
      ...["a", "b", "c"].map((path) => ({ path, ...pair })),
      { path: "d", after: [secret] },
    ]);
  });

  it("of a drifted object are told if it is they that drifted, and hide what is there", () => {
    const manifest = { data: { a: secret, b: secret } };
    const drift = [{ field: "data.a", wanted: secret, live: "x" }];
    const drifted = change({ manifest }, { manifest }, { manifest, drifted: true, drift });
    const live = { data: { a: "x", b: "y" } };
    expect(changedFields(drifted, live as never)).toEqual([{ path: "data.a", before: secret, after: secret }]);
  });
});

describe("what is created", () => {
  it("has the values of the program, without what belongs to the provider", () => {
    const row = { owner: acme, __provider: "a", table: "a", values: { tags: ["x", {}], none: undefined } };
    expect(createdFields(row)).toEqual([
      { path: "table", after: "a" },
      { path: "values.tags[0]", after: "x" },
      { path: "values.tags[1]", after: {} },
    ]);
  });

  const ofType = (apiVersion: string, kind: string) => {
    const metadata = { name: "web", ownerReferences: [{ uid: "a" }] };
    const manifest = { apiVersion, kind, metadata, data: { a: "1" } };
    const initial = { fieldManager: "m", manifest: { ...manifest, data: { b: "2" } } };
    return createdFields({ manifest, initial, adopt: false });
  };

  it.each([
    ["v1", "ConfigMap", "1", "2"],
    ["example.com/v1", "Secret", "1", "2"],
    ["v1", "Secret", "[secret]", "[secret]"],
  ])("of a Kubernetes object are its values and its initial ones: %s %s", (apiVersion, kind, a, b) => {
    expect(ofType(apiVersion, kind)).toEqual([
      { path: "data.a", after: a },
      { path: "initial.manifest.data.b", after: b },
    ]);
  });
});

it("an adoption changes the references to owners that are the manifest's own, and no others", () => {
  const [own, theirs] = ["own", "theirs"].map((uid) => ({ apiVersion: "v1", kind: "Pod", name: uid, uid }));
  const manifest = { ...{ apiVersion: "v1", kind: "Pod" }, metadata: { name: "a", ownerReferences: [own] as never } };
  const liveWith = (references: unknown) => liveObject({ metadata: { ownerReferences: references as never } });
  expect(adoptedFields(liveWith([theirs, own]), manifest)).toEqual([]);
  const added = { path: "metadata.ownerReferences[0]", after: own };
  expect([liveWith([theirs]), liveWith(undefined)].map((live) => adoptedFields(live, manifest))).toEqual([
    [added],
    [added],
  ]);
});

it("an apply changes what it does, and not what only records it", () => {
  const { labels, annotations = {} } = marksOf(acme, { created: true });
  const reference = { apiVersion: "v1", kind: "Pod", name: "b" };
  const theirs = { ...reference, uid: "theirs" };
  const before = liveObject({ metadata: { ownerReferences: [theirs], finalizers: ["a"] }, spec: { a: 1 }, status: {} });
  const metadata = { resourceVersion: "101", ownerReferences: [{ ...reference, uid: acme.uid }], annotations };
  const after = liveObject({ metadata: { ...metadata, labels: { ...labels, b: "1" } }, spec: { a: 2 } });
  expect(appliedFields(before, after)).toEqual([
    { path: "spec.a", before: 1, after: 2 },
    { path: "metadata.labels.b", after: "1" },
    { path: "metadata.ownerReferences[0]", before: theirs },
    { path: "metadata.finalizers", before: ["a"] },
  ]);
  expect(appliedFields(liveObject({}), liveObject({}))).toEqual([]);
});
