import { beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../../src/testing/eventually";
import { findCondition } from "../../stacks/contract/condition";
import { statusOf } from "../../stacks/contract/kind";
import { untilReady } from "./conditions";
import { tenant, uniqueName } from "./manifests";
import { apply, get } from "./objects";
import { useOperator } from "./operator";

const operator = useOperator();
const group = uniqueName("rollout");
const names = ["a", "b", "c", "d", "e"].map((letter) => `${group}-${letter}`);
/** What the new version refuses: the operator comes to one of them first, mostly after the one before them. */
const refused = names.slice(1, 4);

beforeAll(async () => {
  await Promise.all(names.map((name) => apply(tenant(name))));
  await Promise.all(names.map((name) => untilReady(tenant(name))));
});

const programOf = async (name: string) => statusOf(await get(tenant(name))).stack?.program;
const programs = () => Promise.all(names.map(programOf));
const moved = (name: string) => apply(tenant(name, { namespaces: [`${name}-other`] }));

describe("a rollout of a new version", () => {
  const kind = "tenants.multitenancy.codereliant.io";
  const objects = (state: string) => operator.metric("kindstack_rollout_objects", { kind, state });
  let former: string | undefined;
  let failed = "";
  /** Those of the refused that it did not come to. */
  let left: string[] = [];

  it("stops at the object that fails, and leaves those after it as they are", async () => {
    [former] = await programs();
    expect(new Set(await programs()).size).toBe(1);

    // What is protected is part of a Tenant's program.
    await operator.restart({
      args: ["--rollout", "20%"],
      env: { KINDSTACK_PROTECTED_NAMESPACES: refused.join() },
    });
    await eventually(async () => expect(await operator.metric("kindstack_rollout_stopped", { kind })).toBe(1));

    const reasons = await Promise.all(
      refused.map(async (name) => findCondition(statusOf(await get(tenant(name))).conditions, "Ready")?.reason),
    );
    expect(reasons.toSorted()).toEqual(["NamespaceProtected", "Succeeded", "Succeeded"]);
    failed = refused[reasons.indexOf("NamespaceProtected")] ?? "";
    left = refused.filter((name) => name !== failed);
    expect(await Promise.all(refused.map(programOf))).toEqual([former, former, former]);
    const waiting = (await programs()).filter((program) => program === former).length - 1;
    const counts = () => Promise.all(["waiting", "updating", "failed"].map(objects));
    await eventually(async () => expect(await counts()).toEqual([waiting, 0, 1]));
  });

  it("does not delay what a user changes meanwhile", async () => {
    const [changed = "", other = ""] = left;
    const before = await programs();
    await moved(changed);
    await eventually(async () => expect(await programOf(changed)).not.toBe(former));
    expect(await programOf(other)).toBe(former);
    const unchanged = (_: unknown, index: number) => names[index] !== changed;
    expect((await programs()).filter(unchanged)).toEqual(before.filter(unchanged));
  });

  it("continues when the object that failed succeeds", async () => {
    for (const name of [left[1] ?? "", failed]) await moved(name);
    await eventually(async () => {
      const now = await programs();
      expect(now).not.toContain(former);
      expect(new Set(now).size).toBe(1);
    });
    await eventually(async () => expect(await objects("waiting")).toBe(0));
    expect(await operator.metric("kindstack_rollout_stopped", { kind })).toBe(0);
  });
});
