import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { LiveObject, ManagedFieldsEntry } from "../../../providers/kubernetes/client";
import {
  describeConflict,
  OWNER_ANNOTATION,
  OWNER_UID_LABEL,
  ownedFieldsDigest,
  ownerUidOf,
  wasCreated,
} from "../../../providers/kubernetes/ownership";
import { acme, applied, marksOf, namespace } from "../../objects";

const withFields = (...managedFields: ManagedFieldsEntry[]) => namespace("acme", { managedFields });
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
        const other = reordered(fieldsV1) as Record<string, unknown>;
        expect(ownedFieldsDigest(withFields(applied("kindstack", other)))).toBe(
          ownedFieldsDigest(withFields(applied("kindstack", fieldsV1))),
        );
      }),
    );
  });

  it("changes when a field is taken away from Kindstack", () => {
    const less = { "f:metadata": { "f:labels": { "f:team": {} } } };
    expect(ownedFieldsDigest(withFields(applied("kindstack", less)))).not.toBe(
      ownedFieldsDigest(withFields(applied("kindstack", fields))),
    );
  });

  it.each<[string, ManagedFieldsEntry]>([
    ["another manager", applied("kubectl", { "f:data": {} })],
    ["the status", { ...applied("kindstack", { "f:status": {} }), subresource: "status" }],
    ["something other than an apply", { ...applied("kindstack", { "f:spec": {} }), operation: "Update" }],
  ])("ignores the fields of %s", (_, entry) => {
    expect(ownedFieldsDigest(withFields(entry, applied("kindstack", fields)))).toBe(
      ownedFieldsDigest(withFields(applied("kindstack", fields))),
    );
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
    expect(ownedFieldsDigest(namespace("acme"))).toBe(ownedFieldsDigest(withFields(applied("kindstack", {}))));
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

describe("an object that another stack has", () => {
  const live = (kind: string) =>
    ({
      apiVersion: "v1",
      kind,
      metadata: {
        name: "prod",
        labels: { [OWNER_UID_LABEL]: "stack-1" },
        annotations: { [OWNER_ANNOTATION]: "Tenant/a" },
      },
    }) as unknown as LiveObject;

  it("is refused with a word of that stack, where the object is of the same name in both", () => {
    const message = describeConflict(live("Namespace"), { uid: "stack-2", description: "Tenant/a" }, ["stack-2"], true);
    expect(message).toContain("belongs to Tenant/a of another stack (the owner stack-1, not stack-2)");
    expect(message).toContain("To move it with all that is in it");
  });

  it("is not said to have contents where it has none", () => {
    const message = describeConflict(live("RoleBinding"), { uid: "u", description: "Tenant/b" }, ["u"], true);
    expect(message).toMatch(/^RoleBinding prod belongs to Tenant\/a\. Give one of them another name;/);
  });
});
