import { describe, expect, it } from "vitest";
import type { AnyKind } from "../../../stacks/contract/kind";
import { findKind, kindOf } from "../../../stacks/contract/kind-name";
import { kinds } from "../../../stacks/kinds/index";

const tenant = kinds.find(({ kind }) => kind === "Tenant") as AnyKind;
const otherTenant = { ...tenant, group: "capsule.clastix.io", shortNames: ["tnt"] };

describe("a kind on the command line", () => {
  it.each(["Tenant", "tenant", "tenants", "TENANTS", "tenants.multitenancy.codereliant.io", "tenant.multitenancy"])(
    "is known as %s",
    (word) => {
      expect(findKind([tenant], word)).toBe(tenant);
    },
  );

  it("is known by its short name", () => {
    expect(findKind([tenant, otherTenant], "tnt")).toBe(otherTenant);
  });

  it("has to be named with its group when there are two of that name", () => {
    expect(() => findKind([tenant, otherTenant], "tenant")).toThrow(
      "tenant may be tenants.multitenancy.codereliant.io or tenants.capsule.clastix.io: name the group",
    );
    expect(findKind([tenant, otherTenant], "tenant.capsule.clastix.io")).toBe(otherTenant);
    expect(findKind([tenant, otherTenant], "tenant.capsule")).toBe(otherTenant);
  });

  it("is the one of exactly that group, though another group begins like it", () => {
    const longer = { ...tenant, group: `${tenant.group}.example` };
    expect(findKind([longer, tenant], `tenants.${tenant.group}`)).toBe(tenant);
  });

  it("is refused, with the choices, when there is none", () => {
    expect(() => findKind([tenant], "tenants.example.com")).toThrow("it can be one of tenants.multitenancy");
    expect(() => findKind([tenant], "")).toThrow("there is no kind");
  });
});

it("the kind of a manifest goes by kind and group, in any version", () => {
  const manifest = (apiVersion: string) => ({ apiVersion, kind: "Tenant", metadata: {} });
  expect(kindOf([otherTenant, tenant], manifest("multitenancy.codereliant.io/v9"))).toBe(tenant);
  expect(kindOf([tenant], manifest("example.com/v1"))).toBeUndefined();
});
