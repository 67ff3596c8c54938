import { describe, expect, it } from "vitest";
import { OWNER_UID_LABEL } from "../../providers/kubernetes/ownership";
import { applyUntilReady, conditionOf, untilCondition } from "./conditions";
import { kubectl, noKubectl } from "./kubectl";
import { namespace, tenant, uniqueName } from "./manifests";
import { apply, create, find, get, remove } from "./objects";
import { useOperator } from "./operator";

useOperator({ env: { KINDSTACK_PROTECTED_NAMESPACES: "guarded-*" } });

describe("a Tenant that makes no sense is refused by the API server", () => {
  it("when it was valid before and is changed", async () => {
    const name = uniqueName("valid");
    await applyUntilReady(tenant(name));
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
});

it("a Tenant of a namespace that the operator protects gets nothing, neither that nor its others, and is told why; a correction is enough", async () => {
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

  await applyUntilReady(tenant(name, { namespaces: [name] }));
  await remove(namespace(guarded));
});
