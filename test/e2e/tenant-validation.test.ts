import { describe, expect, it } from "vitest";
import { OWNER_UID_LABEL } from "../../providers/kubernetes/ownership";
import type { TenantSpec } from "../../stacks/kinds/tenant/schema";
import { kubectl, noKubectl } from "./kubectl";
import {
  apply,
  conditionOf,
  create,
  find,
  get,
  namespace,
  remove,
  tenant,
  uniqueName,
  untilCondition,
  untilReady,
} from "./objects";
import { useOperator } from "./operator";

const operator = useOperator({ env: { KINDSTACK_PROTECTED_NAMESPACES: "guarded-*" } });

describe("a Tenant that makes no sense is refused by the API server", () => {
  it.each<[string, Partial<TenantSpec>, RegExp]>([
    ["an upper-case namespace", { namespaces: ["Team"] }, /spec\.namespaces\[0\]: Invalid value: "Team"/],
    ["a namespace with a dot", { namespaces: ["ok", "a.b"] }, /spec\.namespaces\[1\]: Invalid value: "a\.b"/],
    ["a namespace that ends with a hyphen", { namespaces: ["team-"] }, /spec\.namespaces\[0\]/],
    ["an empty namespace", { namespaces: [""] }, /spec\.namespaces\[0\]/],
    ["a namespace of 64 characters", { namespaces: ["a".repeat(64)] }, /spec\.namespaces\[0\]: Too long/],
    ["a namespace twice", { namespaces: ["team", "team"] }, /spec\.namespaces\[1\]: Duplicate value: "team"/],
    ["kube-system", { namespaces: ["kube-system"] }, /spec\.namespaces\[0\]: .*kube-\*.* cannot belong to a tenant/],
    ["default", { namespaces: ["default"] }, /spec\.namespaces\[0\]: .*default.* cannot belong to a tenant/],
    ["kindstack-system", { namespaces: ["kindstack-system"] }, /spec\.namespaces\[0\]: .* cannot belong to a tenant/],
    ["an empty e-mail", { adminEmail: "" }, /spec\.adminEmail: Invalid value: ""/],
    ["an e-mail without a host", { adminEmail: "admin" }, /spec\.adminEmail: Invalid value: "admin"/],
    ["a group twice", { adminGroups: ["a", "a"] }, /spec\.adminGroups\[1\]: Duplicate value: "a"/],
    ["an empty group", { userGroups: [""] }, /spec\.userGroups\[0\]/],
  ])("because of %s", async (_, spec, message) => {
    const name = uniqueName("invalid");
    const refused = await create(tenant(name, spec)).catch((error: unknown) => error);
    expect(refused).toMatchObject({ status: 422, message: expect.stringMatching(message) });
    expect(await find(tenant(name))).toBeUndefined();
  });

  it("because of a missing field", async () => {
    const { spec, ...manifest } = tenant(uniqueName("invalid"));
    const { adminEmail: _, ...rest } = spec as TenantSpec;
    await expect(create({ ...manifest, spec: rest })).rejects.toMatchObject({
      message: expect.stringMatching(/spec\.adminEmail: Required/),
    });
    await expect(create(manifest)).rejects.toMatchObject({ message: expect.stringMatching(/spec: Required/) });
  });

  it("when it was valid before and is changed", async () => {
    const name = uniqueName("valid");
    await apply(tenant(name));
    await untilReady(tenant(name));
    await expect(apply(tenant(name, { namespaces: ["kube-public"] }))).rejects.toMatchObject({ status: 422 });
    expect((await get(tenant(name))).metadata.generation).toBe(1);
    expect((await get(namespace("kube-public"))).metadata.annotations).toBeUndefined();
  });

  it("in words that kubectl shows", async ({ skip }) => {
    skip(noKubectl !== undefined, noKubectl);
    const manifest = tenant(uniqueName("invalid"), { namespaces: ["kube-system"], adminEmail: "" });
    const { exitCode, stderr } = await kubectl(["apply", "-f", "-"], JSON.stringify(manifest));
    expect(exitCode).toBe(1);
    expect(stderr).toContain("spec.adminEmail");
    expect(stderr).toContain("kube-*, default and kindstack-system cannot belong to a tenant");
  });

  it("and never reaches the operator", async () => {
    expect(await operator.metric("controller_runtime_reconcile_errors_total")).toBe(0);
    // Of a kind, that is: a watch of a CRD that was installed a moment ago may have to wait, and says so.
    expect(operator.log).not.toMatch(/"level":"(warn|error)".*"kind":/);
  });
});

describe("a Tenant of a namespace that the operator protects", () => {
  it("gets nothing, neither that nor its others, and is told why; a correction is enough", async () => {
    const [name, guarded] = [uniqueName("greedy"), uniqueName("guarded")];
    await create(namespace(guarded));
    await apply(tenant(name, { namespaces: [name, guarded] }));

    const stalled = await untilCondition(tenant(name), "Stalled", "True", "NamespaceProtected");
    expect(conditionOf(stalled, "Stalled").message).toBe(
      `spec.namespaces.1: "${guarded}" is protected and cannot belong to a tenant; ` +
        "allowed: all except kube-*, default, kindstack-system, guarded-*",
    );
    expect((await get(namespace(guarded))).metadata.labels).not.toHaveProperty(OWNER_UID_LABEL);
    expect(await find(namespace(name))).toBeUndefined();

    await apply(tenant(name, { namespaces: [name] }));
    await untilReady(tenant(name));
    await remove(namespace(guarded));
  });
});

describe("a Tenant without", () => {
  it("namespaces or groups is as valid", async () => {
    const name = uniqueName("empty");
    const { spec, ...manifest } = tenant(name, { namespaces: [] });
    const { adminGroups: _, userGroups: __, ...rest } = spec as TenantSpec;
    await apply({ ...manifest, spec: rest });
    const ready = await untilReady(tenant(name));
    expect(ready.status).toMatchObject({ namespaceCount: 0 });
  });
});
