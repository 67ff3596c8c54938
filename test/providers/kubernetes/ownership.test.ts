import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ManagedFieldsEntry } from "../../../providers/kubernetes/client";
import {
  describeConflict,
  mayBeOwnerOf,
  ownedFieldsDigest,
  ownerUidOf,
  stackOwnerUid,
  wasCreated,
} from "../../../providers/kubernetes/ownership";
import { acme, applied, liveObject, marksOf, namespace } from "../../objects";

const digestOf = (...managedFields: ManagedFieldsEntry[]) => ownedFieldsDigest(namespace("acme", { managedFields }));
const fields = { "f:metadata": { "f:labels": { "f:team": {} }, "f:annotations": { "f:adminEmail": {} } } };

/** The same fields, written in another order. */
function reordered(value: unknown): unknown {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, part]) => [key, reordered(part)]),
  );
}

describe("ownedFieldsDigest", () => {
  it("does not depend on the order in which the server writes them", () => {
    const name = fc.string().map((text) => `f:${text}`);
    const managed = fc.dictionary(name, fc.dictionary(name, fc.constant({})));
    fc.assert(
      fc.property(managed, (fieldsV1) => {
        expect(digestOf(applied("kindstack", reordered(fieldsV1) as Record<string, unknown>))).toBe(
          digestOf(applied("kindstack", fieldsV1)),
        );
      }),
    );
  });

  it.each<[string, ManagedFieldsEntry]>([
    ["another manager", applied("kubectl", { "f:data": {} })],
    ["the status", { ...applied("kindstack", { "f:status": {} }), subresource: "status" }],
    ["something other than an apply", { ...applied("kindstack", { "f:spec": {} }), operation: "Update" }],
  ])("ignores the fields of %s", (_, entry) => {
    expect(digestOf(entry, applied("kindstack", fields))).toBe(digestOf(applied("kindstack", fields)));
  });

  it("changes with the value of a field, and not with that of another, also when no one else has taken it", () => {
    const labelled = (team: string, other: string) =>
      namespace("acme", { labels: { team, other }, managedFields: [applied("kindstack", fields)] });
    expect(ownedFieldsDigest(labelled("b", "x"))).not.toBe(ownedFieldsDigest(labelled("a", "x")));
    expect(ownedFieldsDigest(labelled("a", "y"))).toBe(ownedFieldsDigest(labelled("a", "x")));
    const ignored = ["metadata.labels"];
    expect(ownedFieldsDigest(labelled("b", "x"), ignored)).toBe(ownedFieldsDigest(labelled("a", "x"), ignored));
  });

  it("is that of no fields where Kindstack has applied nothing", () => {
    expect(ownedFieldsDigest(namespace("acme"))).toBe(digestOf(applied("kindstack", {})));
  });
});

describe("the ownership labels and annotations", () => {
  it("tell the owner's UID", () => {
    expect(ownerUidOf(namespace("acme", marksOf(acme, { created: true })))).toBe("uid-acme");
    expect(ownerUidOf(namespace("acme"))).toBeUndefined();
  });

  it("tell what was created from what was adopted", () => {
    expect(wasCreated(namespace("acme", marksOf(acme, { created: true })))).toBe(true);
    expect(wasCreated(namespace("acme", marksOf(acme, { created: false })))).toBe(false);
    expect(wasCreated(namespace("acme"))).toBe(false);
  });
});

const DIGEST = "0123456789".repeat(6);
const [ONE, TWO] = [stackOwnerUid("team-prod", DIGEST), stackOwnerUid("other", DIGEST)];

it("a stack of pulumi up has owners whose UIDs are labels, however long its name is", () => {
  const uid = stackOwnerUid(`${"a".repeat(99)}.b`, DIGEST);
  expect(uid).toMatch(/^stack-a{36}-\d{20}$/);
  expect(uid.length).toBeLessThanOrEqual(63);
});

it.each([
  ["widget.team.web-0123456789abcdef012", true],
  [`${"w".repeat(20)}.team.web-0123456789abcdef012`, true],
  [`${"w".repeat(32)}.team.web-0123456789abcdef012`, true],
  [`${"w".repeat(40)}.team.web-0123456789abcdef012`, true],
  ["widget.team.website-0123456789abcdef012", false],
  ["widget.other.web-0123456789abcdef012", false],
  ["prod", false],
])("the stack %s of pulumi up may be the operator's of an object team/web: %s", (stack, expected) => {
  expect(mayBeOwnerOf("team.web", stackOwnerUid(stack, DIGEST))).toBe(expected);
});

describe("an object that another stack has", () => {
  const live = (kind: string, uid = ONE) =>
    liveObject({ kind, metadata: { name: "prod", ...marksOf({ uid, description: "Tenant/a" }, { created: false }) } });

  it("is refused with a word of that stack, where the object is of the same name in both", () => {
    const message = describeConflict(live("Namespace"), { uid: TWO, description: "Tenant/a" }, [TWO], true);
    expect(message).toContain(
      "belongs to Tenant/a in the stack team-prod of `pulumi up` (the owner stack-team-prod-01234567890123456789, not stack-other-01234567890123456789)",
    );
    expect(message).toContain("To move it with all that is in it");
  });

  it("is refused with a word of the operator, where that has an object of this name", () => {
    const uid = "0d5f1e3c-5a1c-4ef9-9a3e-2b6f1c9d8e70";
    const held = live("Namespace", uid);
    const refused = (description: string) => describeConflict(held, { uid: TWO, description }, [TWO], true);
    expect(refused("Tenant/a")).toContain(
      `belongs to Tenant/a in the operator's stack of that object (the owner ${uid}`,
    );
    expect(refused("Tenant/b")).toContain("belongs to Tenant/a. To move it");
  });

  it("is not said to have contents where it has none", () => {
    const message = describeConflict(live("RoleBinding"), { uid: "u", description: "Tenant/b" }, ["u"], true);
    expect(message).toMatch(
      /^RoleBinding prod belongs to Tenant\/a in the stack team-prod of `pulumi up` \(.*\)\. Give one of them another name;/,
    );
  });
});
