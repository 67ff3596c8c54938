import { describe, expect, it } from "vitest";
import type { Properties } from "../../providers/provider";
import { changedFields, changedPaths } from "../../src/plan/fields";

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
      ["where names are the same", [x, a, a], [x, a], [{ path: "items[2]", before: a }]],
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
});

describe("secrets", () => {
  const secret = "[secret]";

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
