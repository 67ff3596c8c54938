import fs from "node:fs";
import path from "node:path";
import Type from "typebox";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import type { Manifest } from "../../../providers/kubernetes/client";
import type { AnyKind } from "../../../stacks/contract/kind";
import { violatedRules } from "../../../stacks/contract/rules";
import { kinds } from "../../../stacks/kinds/index";
import { podSet } from "../../../stacks/kinds/podset/kind";
import { tenant } from "../../../stacks/kinds/tenant/kind";
import { tenantObject } from "../../objects";

const rule = (text: string) => ({ "x-kubernetes-validations": [{ rule: text, message: `must satisfy ${text}` }] });
const timed = (format: string, text: string) => Type.String({ format, ...rule(text) });
const INT_OR_STRING = Type.Union([Type.Integer(), Type.String()], rule("type(self) == int ? self > 1 : self == 'a'"));

/** What is wrong with a value by the rules of a schema for it. */
function violations(schema: Type.TSchema, value: unknown): Promise<string[]> {
  const kind = { ...podSet, rules: [], spec: Type.Object({ field: schema }) } as AnyKind;
  return violatedRules(kind, { apiVersion: "v1", kind: "Thing", metadata: { name: "a" }, spec: { field: value } });
}

describe("the rules of a kind", () => {
  it.each(kinds.map((kind) => [`${kind.kind} of ${kind.group}`, kind] as const))(
    "take its sample: %s",
    async (_, kind) => {
      const sample: Manifest = parse(fs.readFileSync(path.join(kind.directory, "sample.yaml"), "utf8"));
      expect(await violatedRules(kind, sample)).toEqual([]);
    },
  );

  it("refuse a field, naming it, its value and what is allowed", async () => {
    expect(await violatedRules(tenant, tenantObject({ namespaces: ["acme", "kube-system"] }))).toEqual([
      'spec.namespaces.1: "kube-system" kube-*, default and kindstack-system cannot belong to a tenant',
    ]);
  });

  it("may be about the whole object, of whose metadata only the name counts", async () => {
    const long = { apiVersion: "v1", kind: "PodSet", metadata: { name: "p".repeat(64) }, spec: { replicas: 1 } };
    expect(await violatedRules(podSet, long)).toEqual(["the name is a label of the Pods: at most 63 characters"]);
  });

  it.each<[string, Type.TSchema, unknown, boolean]>([
    ["whole numbers", Type.Integer(rule("self + 1 > 3")), 3, true],
    ["other numbers", Type.Number(rule("self + 0.5 > 3.0")), 2, false],
    [
      "an integer that may be missing",
      Type.Object({ a: Type.Optional(Type.Integer()) }, rule("!has(self.a) || self.a % 2 == 0")),
      {},
      true,
    ],
    [
      "items",
      Type.Array(Type.Object({ n: Type.Integer() }), rule("self.all(x, x.n > 1)")),
      [{ n: 2 }, { n: 1 }],
      false,
    ],
    ["patterns as RE2 has them", Type.String(rule("self.matches('^(?i)a$')")), "A", true],
    ["texts, by their characters", Type.String(rule("size(self) == 1")), "𝒳", true],
    ["functions on strings", Type.String(rule("self.split(',').size() == 2")), "a,b", true],
    ["a time", timed("date-time", "self > timestamp('2020-01-01T00:00:00Z')"), "2021-01-01T00:00:00Z", true],
    [
      "a time that is too early",
      timed("date-time", "self > timestamp('2020-01-01T00:00:00Z')"),
      "2019-01-01T00:00:00Z",
      false,
    ],
    ["a date", timed("date", "self.getFullYear() > 2020"), "2021-01-01", true],
    ["a duration", timed("duration", "self > duration('1m')"), "1h30m", true],
    ["a duration that is too short", timed("duration", "self > duration('1m')"), "30s", false],
    ["bytes", timed("byte", "size(self) == 2"), "YWI=", true],
    ["an integer or a string", INT_OR_STRING, 5, true],
    ["an integer or a string, as a string", INT_OR_STRING, "b", false],
    [
      "fields whose names are escaped",
      Type.Object(
        { namespace: Type.String(), "a.b/c__d": Type.Integer(), "max-size": Type.Integer() },
        rule("self.__namespace__ == 'a' && self.max__dash__size > self.a__dot__b__slash__c__underscores__d"),
      ),
      { namespace: "a", "a.b/c__d": 1, "max-size": 2 },
      true,
    ],
    [
      "names in a record, which are not",
      Type.Record(Type.String(), Type.Integer(), rule("'max-size' in self")),
      { "max-size": 2 },
      true,
    ],
    ["nothing of a value that is null", Type.Union([Type.String(), Type.Null()], rule("self == 'a'")), null, true],
    ["a field that is not there", Type.Object({}, rule("self.a > 1")), {}, false],
  ])("judge %s", async (_, schema, value, isTaken) => {
    expect((await violations(schema, value)).length === 0).toBe(isTaken);
  });

  it.each([
    "self == oldSelf",
    "isURL(self)",
    "self.?a.hasValue()",
    "self.a.indexOf(2) == 1",
    "sets.contains(self.a, [1])",
  ])("leave to the API server what only that can judge: %s", async (text) => {
    expect(await violations(Type.Object({ a: Type.Array(Type.Integer()) }, rule(text)), { a: [1] })).toEqual([]);
  });

  it("refuse what a list has twice, by its items or by their keys", async () => {
    const set = Type.Array(Type.String(), { "x-kubernetes-list-type": "set" });
    const map = Type.Array(Type.Object({ name: Type.String() }), {
      "x-kubernetes-list-type": "map",
      "x-kubernetes-list-map-keys": ["name"],
    });
    expect(await violations(set, ["a", "b", "a"])).toEqual(['spec.field.2: "a" is a duplicate value']);
    expect(await violations(map, [{ name: "a" }, { name: "a" }])).toEqual(["spec.field.1: is a duplicate value"]);
    expect(await violations(map, [{ name: "a" }, { name: "b" }])).toEqual([]);
  });
});
