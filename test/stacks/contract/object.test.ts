import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { controllerReference, objectId, objectKey, stackName } from "../../../stacks/contract/object";
import { kinds } from "../../../stacks/kinds/index";
import { tenantObject } from "../../objects";

const label = fc.stringMatching(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/);
const dnsName = fc.array(label, { minLength: 1, maxLength: 4 }).map((labels) => labels.join(".").slice(0, 253));
const kind = fc
  .record({ singular: label, group: dnsName })
  .map((names) => ({ ...names, plural: `${names.singular}s` }));
const identity = fc.record({ kind, namespace: fc.option(label, { nil: undefined }), name: dnsName });
type Identity = typeof identity extends fc.Arbitrary<infer T> ? T : never;

const nameOf = ({ kind, namespace, name }: Identity) =>
  stackName(kind, objectKey({ name, ...(namespace && { namespace }) }));
const textOf = ({ kind, namespace, name }: Identity) =>
  JSON.stringify([kind.plural, kind.group, namespace ?? null, name]);

/** Names at the limits that Kubernetes sets, of the kinds that exist, with a second one called Tenant. */
const atTheLimits = fc.record({
  kind: fc.constantFrom(...kinds.map(({ group, plural, singular }) => ({ group, plural, singular })), {
    group: "capsule.clastix.io",
    plural: "tenants",
    singular: "tenant",
  }),
  namespace: fc.option(fc.constantFrom("a", "a-b", "x".repeat(62), `${"x".repeat(62)}y`, "x".repeat(63)), {
    nil: undefined,
  }),
  name: fc.oneof(
    fc.constantFrom("a", "b", "a.b", "a-b", "a.a", "b.a-b"),
    fc
      .record({ same: fc.integer({ min: 60, max: 250 }), rest: fc.constantFrom("a", "b", ".a", "-a", "aa") })
      .map(({ same, rest }) => `${"x".repeat(same)}${rest}`.slice(0, 253)),
  ),
});

describe("stackName", () => {
  it("never gives two objects at the limits of what a name may be the same name, nor one that is too long", () => {
    fc.assert(
      fc.property(fc.uniqueArray(atTheLimits, { selector: textOf, minLength: 2, maxLength: 100 }), (identities) => {
        const names = identities.map(nameOf);
        expect(new Set(names).size).toBe(identities.length);
        for (const name of names) expect(name).toMatch(/^[a-zA-Z0-9._-]{1,100}$/);
      }),
    );
  });

  it("never gives two different objects the same name", () => {
    fc.assert(
      fc.property(fc.uniqueArray(identity, { selector: textOf, minLength: 2, maxLength: 50 }), (identities) => {
        expect(new Set(identities.map(nameOf)).size).toBe(identities.length);
      }),
    );
  });

  it("is at most 100 characters of the set that Pulumi allows", () => {
    fc.assert(fc.property(identity, (object) => void expect(nameOf(object)).toMatch(/^[a-zA-Z0-9._-]{1,100}$/)));
  });

  it("is the same every time", () => {
    fc.assert(fc.property(identity, (object) => void expect(nameOf(object)).toBe(nameOf(structuredClone(object)))));
  });

  it.each([
    ["a namespace from the first part of a name", "a/b.c", "a.b/c"],
    ["a name with a dot from a namespace and a name", "a/b", "a.b"],
    ["names that are the same in the part that is readable", `${"x".repeat(90)}1`, `${"x".repeat(90)}2`],
  ])("tells %s", (_, one, other) => {
    const things = { group: "example.com", plural: "things", singular: "thing" };
    expect(stackName(things, one)).not.toBe(stackName(things, other));
  });

  it("tells kinds of the same name in different groups", () => {
    const [one, other] = ["a.example", "b.example"].map((group) => ({ group, plural: "tenants", singular: "tenant" }));
    expect(stackName(one as NonNullable<typeof one>, "acme")).not.toBe(
      stackName(other as NonNullable<typeof other>, "acme"),
    );
  });

  it("can be read by people", () => {
    const writers = { group: "demo.yash.com", plural: "postgreswriters", singular: "postgreswriter" };
    expect(stackName(writers, "default/alex")).toMatch(/^postgreswriter\.default\.alex-[0-9a-f]{19}$/);
  });
});

describe("the names of an object", () => {
  it("in an id are its type, its namespace and its name", () => {
    const rbac = "rbac.authorization.k8s.io/v1";
    expect(objectId({ apiVersion: "v1", kind: "Namespace", metadata: { name: "acme" } })).toBe("v1/Namespace//acme");
    expect(objectId({ apiVersion: rbac, kind: "RoleBinding", metadata: { name: "edit", namespace: "acme" } })).toBe(
      `${rbac}/RoleBinding/acme/edit`,
    );
  });

  it("in a key are those that kubectl uses", () => {
    expect(objectKey({ name: "alex", namespace: "default" })).toBe("default/alex");
    expect(objectKey({ name: "acme" })).toBe("acme");
  });
});

it("controllerReference names the object as the one controller, and holds its deletion back", () => {
  expect(controllerReference(tenantObject())).toEqual({
    apiVersion: "multitenancy.codereliant.io/v1",
    kind: "Tenant",
    name: "acme",
    uid: "uid-acme",
    controller: true,
    blockOwnerDeletion: true,
  });
});
