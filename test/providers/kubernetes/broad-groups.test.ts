import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { refuseBroadGroup } from "../../../providers/kubernetes/broad-groups";
import { validateCapsuleTenant } from "../../../stacks/kinds/capsule-tenant/validate";
import { validateTenant } from "../../../stacks/kinds/tenant/schema";
import { tenantObject } from "../../objects";
import { oilTenant } from "../../stacks/kinds/capsule-tenant/objects";

beforeEach(() => void vi.stubEnv("KINDSTACK_ALLOWED_GROUPS", undefined));
afterEach(() => void vi.unstubAllEnvs());

describe("groups that everybody is in", () => {
  it.each(["system:authenticated", "system:unauthenticated", "system:serviceaccounts"])(
    "are refused, with how they are allowed: %s",
    (name) => {
      expect(() => refuseBroadGroup(name, "spec.adminGroups.0")).toThrow(
        `spec.adminGroups.0: "${name}" is not a team but everybody`,
      );
      vi.stubEnv("KINDSTACK_ALLOWED_GROUPS", `other, ${name}`);
      expect(() => refuseBroadGroup(name, "spec.adminGroups.0")).not.toThrow();
    },
  );

  it("do not include the accounts of one namespace", () => {
    expect(() => refuseBroadGroup("system:serviceaccounts:ci", "spec.owner.name")).not.toThrow();
  });

  it("are refused in Tenants of both kinds", () => {
    for (const field of ["adminGroups", "userGroups"]) {
      const tenant = tenantObject({ [field]: ["team", "system:authenticated"] });
      expect(() => validateTenant(tenant)).toThrow(`spec.${field}.1`);
    }
    const subjects = [{ kind: "Group" as const, name: "system:authenticated" }];
    const owned = { owner: subjects[0] as (typeof subjects)[number] };
    expect(() => validateCapsuleTenant(oilTenant(owned))).toThrow("spec.owner.name");
    const bound = (clusterRoleName: string) => oilTenant({ additionalRoleBindings: [{ clusterRoleName, subjects }] });
    expect(() => validateCapsuleTenant(bound("edit"))).toThrow("spec.additionalRoleBindings.0.subjects");
    expect(() => validateCapsuleTenant(bound("view"))).not.toThrow();
  });
});
