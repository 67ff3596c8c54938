import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ownNamespaces } from "../../src/proxy/selector";
import { TENANT_LABEL } from "../../stacks/capsule-tenant/labels";

describe("the selector of one's own namespaces", () => {
  it("names the tenants", () => {
    expect(ownNamespaces(TENANT_LABEL, ["gas", "oil"], null)).toBe("capsule.clastix.io/tenant in (gas,oil)");
  });

  it("selects nothing for the owner of nothing", () => {
    expect(ownNamespaces(TENANT_LABEL, [], null)).toBe("capsule.clastix.io/tenant,!capsule.clastix.io/tenant");
    expect(ownNamespaces(TENANT_LABEL, [], "a=b")).toBe("capsule.clastix.io/tenant,!capsule.clastix.io/tenant,a=b");
  });

  it("is narrowed by what the client selects", () => {
    expect(ownNamespaces(TENANT_LABEL, ["oil"], "env in (dev,test),!old")).toBe(
      "capsule.clastix.io/tenant in (oil),env in (dev,test),!old",
    );
    expect(ownNamespaces(TENANT_LABEL, ["oil"], " ")).toBe("capsule.clastix.io/tenant in (oil)");
  });

  it("leaves out tenants whose name no label can hold", () => {
    expect(ownNamespaces(TENANT_LABEL, ["oil", "x".repeat(64)], null)).toBe("capsule.clastix.io/tenant in (oil)");
    expect(ownNamespaces(TENANT_LABEL, ["x".repeat(64)], null)).toBe(
      "capsule.clastix.io/tenant,!capsule.clastix.io/tenant",
    );
  });

  it("has the tenants' requirement whole and in front, whatever the client sends", () => {
    fc.assert(
      fc.property(fc.string(), (requested) => {
        const selector = ownNamespaces(TENANT_LABEL, ["oil"], requested);
        const [own, rest] = [selector.slice(0, 34), selector.slice(34)];
        return own === "capsule.clastix.io/tenant in (oil)" && (rest === "" || rest === `,${requested}`);
      }),
    );
  });
});
