import { randomBytes } from "node:crypto";
import { KubeConfig } from "@kubernetes/client-node";
import fc from "fast-check";
import Type, { type TObject, type TSchema } from "typebox";
import { Check } from "typebox/value";
import { describe, expect, it } from "vitest";
import { isApiError, KubernetesClient, known } from "../../providers/kubernetes/client";
import { installKinds } from "../../src/operator/install";
import { permittedKinds } from "../../src/operator/rights";
import { customResourceDefinition } from "../../stacks/contract/crd";
import { defineKind, kindApiVersion, kindName, kindType } from "../../stacks/contract/kind";
import { operatorRules } from "../../stacks/contract/rbac";
import { structuralSchema } from "../../stacks/contract/structural";
import { kinds } from "../../stacks/kinds/index";
import { memcached } from "../../stacks/kinds/memcached/kind";
import { postgresWriter } from "../../stacks/kinds/postgres-writer/kind";
import { tokenOf } from "../e2e/objects";
import { TestCluster } from "../providers/kubernetes/test-cluster";
import { roleFor } from "../rights";
import { GADGET } from "./gadget";

const cluster = TestCluster.use();

const definitions = () => cluster.client.resourceType("apiextensions.k8s.io/v1", "CustomResourceDefinition");

// A list of versions is one field. Were it stored in another form than it is applied in, `kubectl apply --server-side`
// of the same CRDs would be refused as a conflict with the operator that installed them.
it("installs CRDs that are stored as they are written", async () => {
  await installKinds(cluster.client, kinds);

  const crds = await definitions();
  for (const kind of kinds) {
    const stored = await known(cluster.client.get(crds, kindName(kind)));
    const wanted = customResourceDefinition(kind).spec as { versions: unknown };
    expect((stored?.spec as typeof wanted | undefined)?.versions).toEqual(wanted.versions);
  }
});

it("keeps the kinds that the operator has the rights for, and says what the others lack", async () => {
  const name = `granted-${randomBytes(4).toString("hex")}`;
  const account = { kind: "ServiceAccount", name: "default", namespace: cluster.namespace };
  const rules = operatorRules([postgresWriter, memcached]).filter(
    ({ resources }) => !resources.includes("deployments"),
  );
  const manifests = roleFor([account], rules, { name });
  for (const manifest of manifests) await cluster.applyAs("test", manifest);
  const token = await tokenOf(cluster.namespace, "default");
  const config = new KubeConfig();
  config.loadFromClusterAndUser(cluster.config().getCurrentCluster() as never, { name, token });
  const client = new KubernetesClient(config);
  const reported = new Map<string, string>();
  try {
    const permitted = await permittedKinds(client, [postgresWriter, memcached], (kind, reason) =>
      reported.set(kind, reason),
    );

    expect(permitted).toEqual([postgresWriter]);
    expect([...reported.keys()]).toEqual([kindName(memcached)]);
    expect(reported.get(kindName(memcached))).toContain(
      "the operator may not get, list, watch, create, patch, delete deployments.apps; install Kindstack with this kind",
    );
    await expect(permittedKinds(client, [memcached], () => {})).rejects.toThrow("no kind can be served");
    expect(await permittedKinds(cluster.client, kinds, (kind, reason) => reported.set(kind, reason))).toEqual(kinds);
  } finally {
    await client.close();
    for (const { apiVersion, kind } of manifests) {
      await cluster.client.delete(await cluster.client.resourceType(apiVersion, kind), name);
    }
  }
});

it("ends when the API server serves what it has installed", async () => {
  const crds = await definitions();
  for (let round = 0; round < 10; round++) {
    const kind = { ...postgresWriter, group: `installed-${randomBytes(4).toString("hex")}.example.com` };
    try {
      await installKinds(cluster.client, [kind]);

      const type = await cluster.client.resourceType(kindApiVersion(kind), kind.kind);
      expect(await cluster.client.list(type)).toMatchObject({ items: [] });
    } finally {
      await cluster.client.delete(crds, kindName(kind));
    }
  }
});

describe("schemas", () => {
  const kindWith = (spec: TObject, name = "Shape") => {
    const singular = name.toLowerCase();
    const names = { kind: name, plural: `${singular}s`, singular };
    const group = `s${randomBytes(4).toString("hex")}.example.com`;
    const status = Type.Object({ seen: Type.Optional(Type.Union([Type.Integer(), Type.Null()])) });
    return defineKind({ ...GADGET, ...names, group, spec, status, owns: [] });
  };
  const optional = (schemas: readonly TSchema[]) =>
    Type.Object(Object.fromEntries(schemas.map((schema, index) => [`f${index}`, Type.Optional(schema)])));

  // What the operator refuses of what the API server has stored is an object that is Stalled for good.
  it("mean the same to the API server and to the operator", async () => {
    const cases: [schema: TSchema, right: unknown[], wrong: unknown[]][] = [
      [Type.Literal("a"), ["a"], ["b"]],
      [Type.Union([Type.Literal("a"), Type.Literal("b")]), ["a", "b"], ["c", 1]],
      [Type.Enum({ one: 1, two: "2" }), [1, "2"], [2, "1", true]],
      [Type.Record(Type.String(), Type.Integer({ minimum: 1 })), [{}, { x: 1 }], [{ x: 0 }, { x: "a" }]],
      [Type.Union([Type.String(), Type.Null()]), ["", null], [1]],
      [Type.Union([Type.Integer({ minimum: 1 }), Type.String({ pattern: "^\\d+%$" })]), [1, "5%"], [0, "5", true]],
      [Type.Unknown(), [1, "a", { b: [true] }], []],
      [Type.Array(Type.String(), { uniqueItems: true }), [[], ["a", "b"]], [["a", "a"]]],
      [Type.Number({ exclusiveMinimum: 0 }), [0.5, 1], [0, -1]],
      [Type.Object({ a: Type.String() }, { additionalProperties: false }), [{ a: "" }], [{}]],
      [
        Type.Intersect([Type.Object({ a: Type.String() }), Type.Object({ b: Type.Optional(Type.Integer()) })]),
        [{ a: "x" }, { a: "x", b: 1 }],
        [{ b: 1 }],
      ],
      [
        Type.Union([
          Type.Object({ from: Type.Literal("git"), url: Type.String() }),
          Type.Object({ from: Type.Literal("oci"), image: Type.String() }),
        ]),
        [
          { from: "git", url: "u" },
          { from: "oci", image: "i" },
        ],
        [{ from: "git", image: "i" }, { from: "svn" }, {}],
      ],
      [Type.TemplateLiteral([Type.Literal("v"), Type.Number()]), ["v1"], ["x"]],
      [Type.String({ format: "duration" }), ["1h30m", "-1.5s", "0", "2 weeks", "10days", "P1D"], ["1", "h", "PT", ""]],
      [
        Type.String({ format: "uuid" }),
        ["c0ffee00-0000-4000-8000-000000000000", "C0FFEE00000040008000000000000000"],
        ["c0ffee00", ""],
      ],
      [
        Type.String({ format: "date-time" }),
        ["2026-11-25T09:00:00Z", "2026-11-25t09:00:00.5+99:99"],
        ["2026-11-25", "x"],
      ],
      [Type.String({ format: "hostname" }), ["a", "a-b.example.com", "xn--a.de"], ["-a", "a..b", "a_b"]],
      [Type.String({ format: "ipv4" }), ["10.0.0.1", "010.0.0.1"], ["10.0.0", "::1"]],
      [Type.String({ format: "ipv6" }), ["::1", "2001:db8::a"], ["10.0.0.1", "fe80::1%eth0"]],
      [Type.String({ format: "uri" }), ["https://example.com/a?b", "/a", "urn:a:b"], ["a", ""]],
      [Type.String({ format: "email" }), ["a@example.com", "Ann <a@example.com>"], ["a", "@"]],
      [Type.String({ format: "date" }), ["2026-11-25"], ["2026-13-25", "25.11.2026"]],
    ];
    const kind = kindWith(optional(cases.map(([schema]) => schema)));
    await installKinds(cluster.client, [kind]);
    const verdicts = async (value: unknown, index: number) => {
      const spec = { [`f${index}`]: value };
      const metadata = { name: `n${randomBytes(4).toString("hex")}`, namespace: cluster.namespace };
      const object = { ...kindType(kind), metadata, spec };
      const stored = await cluster.client.create(object).catch((error: unknown) => {
        if (isApiError(error, 422)) return undefined;
        throw error;
      });
      const operator = Check(kind.spec, stored?.spec ?? spec);
      return { value, server: stored !== undefined, operator, kept: stored?.spec };
    };
    for (const [index, [, right, wrong]] of cases.entries()) {
      for (const value of right) {
        const kept = { [`f${index}`]: value };
        expect.soft(await verdicts(value, index)).toEqual({ value, server: true, operator: true, kept });
      }
      for (const value of wrong) {
        expect.soft(await verdicts(value, index)).toEqual({ value, server: false, operator: false, kept: undefined });
      }
    }
  });

  it("that are not refused are taken by the API server: generated", async () => {
    const { schema } = fc.letrec<{ schema: TSchema }>((tie) => ({
      schema: fc.oneof({ depthSize: "small", withCrossShrink: true }, scalar, nested(tie("schema"))),
    }));
    const schemas = fc.sample(schema, { numRuns: 400, seed: 49 });
    const [taken, refused] = [[] as TSchema[], [] as string[]];
    for (const one of schemas) {
      try {
        structuralSchema(one, "spec");
        taken.push(one);
      } catch (error) {
        refused.push((error as Error).message);
      }
    }
    expect([taken.length > 150, refused.length > 50]).toEqual([true, true]);
    for (const message of refused) expect(message).toMatch(/^spec(\.[\w*]+)*: .+: write .+/);
    for (let from = 0; from < taken.length; from += 50) {
      const crd = customResourceDefinition(kindWith(optional(taken.slice(from, from + 50))));
      await cluster.client.apply(crd, { dryRun: true });
    }
  });

  it("that the API server refuses keep no other kind from being served", async () => {
    const rule = { rule: "self.nothing > 0", message: "must be" };
    const bad = kindWith(Type.Object({ a: Type.Integer({ "x-kubernetes-validations": [rule] }) }), "Bad");
    const good = kindWith(Type.Object({}), "Good");
    const reported = new Map<string, string>();

    const served = await installKinds(cluster.client, [bad, good], (kind, reason) => reported.set(kind, reason));

    expect(served).toEqual([good]);
    expect([...reported]).toEqual([[kindName(bad), expect.stringContaining("self.nothing")]]);
    await expect(installKinds(cluster.client, [bad], () => {})).rejects.toThrow("self.nothing");
  });
});

const scalar: fc.Arbitrary<TSchema> = fc.oneof(
  fc.constantFrom<TSchema>(
    Type.String(),
    Type.String({ pattern: "^[a-z]+$", maxLength: 9, default: "a" }),
    Type.String({ format: "duration" }),
    Type.String({ format: "regex" }),
    Type.Integer({ exclusiveMinimum: 0 }),
    Type.Integer({ minimum: 1, default: 0 }),
    Type.Number({ exclusiveMaximum: 9, maximum: 5, multipleOf: 0.5 }),
    Type.Boolean({ default: true, description: "yes" }),
    Type.Null(),
    Type.Unknown(),
    Type.Any({ title: "any" }),
    Type.Literal("a"),
    Type.Literal(1),
    Type.Enum(["a", "b"]),
    Type.Enum([1, "b"]),
    Type.Union([Type.Literal(true), Type.Literal("b")]),
    Type.TemplateLiteral([Type.Literal("v"), Type.String()]),
    Type.BigInt(),
  ),
);

function nested(inner: fc.Arbitrary<TSchema>): fc.Arbitrary<TSchema> {
  const fields = fc.dictionary(fc.constantFrom("a", "b", "c"), fc.tuple(inner, fc.boolean()), { maxKeys: 3 });
  const object = fc
    .tuple(fields, fc.constantFrom({}, { additionalProperties: false }))
    .map(([given, options]) =>
      Type.Object(
        Object.fromEntries(
          Object.entries(given).map(([name, [one, required]]) => [name, required ? one : Type.Optional(one)]),
        ),
        options,
      ),
    );
  return fc.oneof(
    object,
    fc.tuple(inner, fc.boolean()).map(([one, uniqueItems]) => Type.Array(one, { uniqueItems, maxItems: 9 })),
    inner.map((one) => Type.Record(Type.String(), one)),
    inner.map((one) => Type.Union([one, Type.Null()])),
    fc.tuple(inner, inner).map(([one, other]) => Type.Union([one, other])),
    fc.tuple(object, object).map(([one, other]) => Type.Union([one, other])),
    fc.tuple(object, object).map(([one, other]) => Type.Intersect([one, other])),
    fc.tuple(inner, inner).map(([one, other]) => Type.Tuple([one, other])),
  );
}
