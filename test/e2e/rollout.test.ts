import { beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../../src/testing/eventually";
import { findCondition } from "../../stacks/contract/condition";
import { statusOf } from "../../stacks/contract/kind";
import { apply, get, tenant, uniqueName, untilReady } from "./objects";
import { useOperator } from "./operator";

const operator = useOperator();
const group = uniqueName("rollout");
/** In the order in which the operator comes to them. */
const names = ["a", "b", "c", "d", "e"].map((letter) => `${group}-${letter}`);
const [, second = ""] = names;

beforeAll(async () => {
  await Promise.all(names.map((name) => apply(tenant(name))));
  await Promise.all(names.map((name) => untilReady(tenant(name))));
});

async function programs(): Promise<(string | undefined)[]> {
  const objects = await Promise.all(names.map((name) => get(tenant(name))));
  return objects.map((object) => statusOf(object).stack?.program);
}

describe("a rollout of a new version", () => {
  const kind = "tenants.multitenancy.codereliant.io";
  const objects = (state: string) => operator.metric("kindstack_rollout_objects", { kind, state });
  let former: string | undefined;

  it("stops at the object that fails, and leaves those after it as they are", async () => {
    [former] = await programs();
    expect(new Set(await programs()).size).toBe(1);

    // What is protected is part of a Tenant's program; the second one's namespace is from now on.
    await operator.restart({ args: ["--rollout", "20%"], env: { KINDSTACK_PROTECTED_NAMESPACES: second } });
    await eventually(async () => expect(await operator.metric("kindstack_rollout_stopped", { kind })).toBe(1));

    const [first, ...others] = await programs();
    expect(first).not.toBe(former);
    expect(others).toEqual([former, former, former, former]);
    expect(findCondition(statusOf(await get(tenant(second))).conditions, "Ready")?.reason).toBe("NamespaceProtected");
    expect([await objects("waiting"), await objects("updating"), await objects("failed")]).toEqual([3, 0, 1]);
  });

  it("does not delay what a user changes meanwhile", async () => {
    const last = names[4] ?? "";
    await apply(tenant(last, { adminEmail: "new@example.com" }));
    await eventually(async () => expect((await programs())[4]).not.toBe(former));
    expect((await programs()).slice(1, 4)).toEqual([former, former, former]);
  });

  it("continues when the object that failed succeeds", async () => {
    await apply(tenant(second, { namespaces: [`${second}-other`] }));
    await eventually(async () => {
      const now = await programs();
      expect(now).not.toContain(former);
      expect(new Set(now).size).toBe(1);
    });
    await eventually(async () => expect(await objects("waiting")).toBe(0));
    expect(await operator.metric("kindstack_rollout_stopped", { kind })).toBe(0);
  });
});
