import { setTimeout as delay } from "node:timers/promises";
import { beforeAll, describe, expect, it } from "vitest";
import type { Overview } from "../../src/status/overview";
import { eventually } from "../../src/testing/eventually";
import { kinds } from "../../stacks/kinds/index";
import { Promtool } from "../stacks/platform/promtool";
import { applyUntilReady, removeUntilGone, untilReady } from "./conditions";
import { kubectl, noKubectl } from "./kubectl";
import { TENANT, tenant, uniqueName } from "./manifests";
import { apply, client } from "./objects";
import { kindstack, useOperator } from "./operator";

const operator = useOperator({
  args: ["--drift-interval", "1", "--engine-idle", "1"],
  env: { KINDSTACK_PROTECTED_NAMESPACES: "reserved-*" },
});

it("a running operator has no process beside itself while nothing is to be done", async () => {
  const idle = tenant(uniqueName("idle"));
  await apply(idle);
  await eventually(() => expect(operator.children()).not.toEqual([]));
  await untilReady(idle); // what was seen may have been the process that prepared the work directory
  await eventually(() => expect(operator.children()).toEqual([]));
  const seen: unknown[] = [];
  for (let sample = 0; sample < 30; sample++) {
    seen.push(...operator.children());
    await delay(100); // over two looks for drift
  }
  expect(seen).toEqual([]);
});

it("the alerts evaluate what a running operator exports, and tell of an object that is stalled", async () => {
  const promtool = await Promtool.open();
  try {
    const stalled = tenant(uniqueName("stalled"), { namespaces: ["reserved-two"] });
    await apply(stalled);
    const kind = 'kind="tenants.multitenancy.codereliant.io"';
    const notSynced = `KindstackObjectsNotSynced{${kind},reason="NamespaceProtected"}`;
    const alerts = [`KindstackObjectsStalled{${kind}}`, notSynced];
    // What one look sees may be on its way to what it will be.
    await eventually(async () => {
      const { text } = await operator.get("/metrics");
      const samples = text.split("\n").filter((line) => /^(kindstack|workqueue)_/.test(line));
      const series = Object.fromEntries(
        samples.map((line) => {
          const end = line.lastIndexOf(" ");
          return [line.slice(0, end), `${line.slice(end + 1)}x90`];
        }),
      );
      promtool.expectFiring(series, 80, alerts);
    });
    await removeUntilGone(stalled);
  } finally {
    promtool.close();
  }
});

describe("what was done for an object", () => {
  const controller = "tenants.multitenancy.codereliant.io";
  const name = uniqueName("lived");
  const before = new Map<string, number>();
  const operations = (operation: string) =>
    operator.metric("kindstack_resource_operations_total", { kind: controller, operation });
  const updates = (operation: string) => operator.updates({ kind: controller, result: "succeeded", operation });
  /** What an earlier file has left to be deleted, this operator may have destroyed. */
  let destroyedBefore: number;

  beforeAll(async () => {
    for (const operation of ["create", "update", "delete"]) before.set(operation, await operations(operation));
    destroyedBefore = await updates("destroy");
    await applyUntilReady(tenant(name));
    await applyUntilReady(tenant(name, { adminEmail: "new@example.com" }));
    await removeUntilGone(tenant(name));
  });

  it("is counted under the names that controllers have in common", async () => {
    await operator.untilIdle();
    const succeeded = { controller, result: "success" };
    expect(await operator.metric("controller_runtime_reconcile_total", succeeded)).toBeGreaterThan(0);
    expect(await updates("up")).toBeGreaterThanOrEqual(2);
    expect((await updates("destroy")) - destroyedBefore).toBe(1);
    const done = ["create", "update", "delete"].map(async (operation) => {
      return (await operations(operation)) - (before.get(operation) ?? 0);
    });
    expect(await Promise.all(done)).toEqual([3, 1, 3]);
    expect(await operator.metric("workqueue_adds_total", { name: "kindstack" })).toBeGreaterThan(0);
  });

  it("is counted by kind and reason as long as there are objects", async () => {
    const count = (reason: string) => operator.metric("kindstack_objects", { kind: controller, reason });
    const [stalled, ready] = [uniqueName("stalled"), uniqueName("ready")];
    const [before, refused] = [await count("Succeeded"), await count("NamespaceProtected")];
    await apply(tenant(ready));
    await apply(tenant(stalled, { namespaces: ["reserved-one"] }));
    await eventually(async () => {
      expect([(await count("Succeeded")) - before, (await count("NamespaceProtected")) - refused]).toEqual([1, 1]);
    });
    expect(await operator.metric("kindstack_object_states", { kind: controller, state: "Stalled" })).toBe(refused + 1);

    await removeUntilGone(tenant(stalled));
    await eventually(async () => expect(await count("NamespaceProtected")).toBe(refused));
  });

  it.skipIf(noKubectl)(`is shown for all kinds at once by kubectl (${noKubectl ?? "it is there"})`, async () => {
    const [lively, resting] = [uniqueName("lively"), uniqueName("resting")];
    await Promise.all([applyUntilReady(tenant(lively)), applyUntilReady(tenant(resting))]);
    await kubectl(["annotate", "tenant.multitenancy", resting, "kindstack.dev/paused=true"]);

    await eventually(async () => {
      const { stdout } = await kubectl(["get", "kindstack", "-A"]);
      const lines = stdout.split("\n").map((line) => line.trim().split(/\s+/));
      const rowOf = (name: string) => lines.find(([first]) => first?.endsWith(`/${name}`))?.slice(3, -1);
      expect(rowOf(lively)).toEqual(["True", "True", "Succeeded"]);
      expect(rowOf(resting)).toEqual(["True", "True", "Succeeded", "True"]);
    });
  });

  it("is shown on one screen by `kindstack status`", async () => {
    const metricsUrl = operator.url("/metrics");
    const overview = JSON.parse(kindstack(["status", "-o", "json", "--metrics-url", metricsUrl])) as Overview;
    const tenants = await client.list(TENANT);
    expect(overview.kinds).toHaveLength(kinds.length);
    const counted = { kind: controller, objects: tenants.items.length, states: expect.anything() };
    expect(overview.kinds).toContainEqual(expect.objectContaining(counted));
    const updates = { succeeded: await operator.updates({ result: "succeeded" }), failed: 0 };
    expect(overview.operator).toMatchObject({ queue: { workers: expect.any(Number) }, updates });
    const deleted = { object: `Tenant ${name}`, reason: "Deleted", note: expect.stringContaining("3 deleted: ") };
    expect(overview.events).toContainEqual(expect.objectContaining(deleted));
    expect(kindstack(["status", "--metrics-url", metricsUrl])).toMatch(/^tenants\.multitenancy\S+ +\d/m);
  });
});
