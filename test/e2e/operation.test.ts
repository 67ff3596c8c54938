import { setTimeout as delay } from "node:timers/promises";
import { beforeAll, describe, expect, it } from "vitest";
import type { LiveObject } from "../../providers/kubernetes/client";
import { eventually } from "./eventually";
import { apply, eventsAbout, remove, tenant, uniqueName, untilGone, untilReady } from "./objects";
import { useOperator } from "./operator";

const operator = useOperator({ args: ["--drift-interval", "1"] });

describe("a running operator", () => {
  it("says that it is well and ready", async () => {
    expect(await operator.get("/healthz")).toEqual({ status: 200, text: "ok" });
    expect(await operator.get("/readyz")).toEqual({ status: 200, text: "ok" });
  });

  it("has no process beside itself while nothing is to be done", async () => {
    await apply(tenant(uniqueName("idle")));
    await eventually(() => expect(operator.children()).not.toEqual([]));
    await eventually(() => expect(operator.children()).toEqual([]));
    const seen: unknown[] = [];
    for (let sample = 0; sample < 30; sample++) {
      seen.push(...operator.children());
      await delay(100); // over two looks for drift
    }
    expect(seen).toEqual([]);
  });

  it("logs one JSON object a line", () => {
    const lines = operator.log.trim().split("\n");
    expect(lines.length).toBeGreaterThan(1);
    for (const line of lines) {
      expect(JSON.parse(line)).toEqual(expect.objectContaining({ level: expect.any(String), msg: expect.any(String) }));
    }
  });
});

describe("what was done for an object", () => {
  const controller = "tenants.multitenancy.codereliant.io";
  const name = uniqueName("lived");
  let object: LiveObject;
  const before = new Map<string, number>();
  const operations = (operation: string) =>
    operator.metric("kindstack_resource_operations_total", { kind: controller, operation });

  beforeAll(async () => {
    for (const operation of ["create", "update", "delete"]) before.set(operation, await operations(operation));
    object = await apply(tenant(name));
    await untilReady(tenant(name));
    await apply(tenant(name, { adminEmail: "new@example.com" }));
    await untilReady(tenant(name));
    await remove(tenant(name));
    await untilGone(tenant(name));
  });

  it("is counted under the names that controllers have in common", async () => {
    await eventually(async () => {
      expect(await operator.metric("controller_runtime_active_workers", { controller })).toBe(0);
    });
    const succeeded = { controller, result: "success" };
    expect(await operator.metric("controller_runtime_reconcile_total", succeeded)).toBeGreaterThan(0);
    const updates = { kind: controller, result: "succeeded" };
    expect(await operator.metric("kindstack_updates_total", { ...updates, operation: "up" })).toBeGreaterThanOrEqual(2);
    expect(await operator.metric("kindstack_updates_total", { ...updates, operation: "destroy" })).toBe(1);
    const done = ["create", "update", "delete"].map(async (operation) => {
      return (await operations(operation)) - (before.get(operation) ?? 0);
    });
    expect(await Promise.all(done)).toEqual([3, 1, 3]);
    expect(await operator.metric("workqueue_adds_total", { name: "kindstack" })).toBeGreaterThan(0);
    expect(await operator.metric("workqueue_depth", { name: "kindstack" })).toBe(0);
  });

  it("is told by Events", async () => {
    await eventually(async () => {
      const events = await eventsAbout(object);
      expect(events.map(({ reason, note }) => `${reason}: ${note}`).sort()).toEqual([
        "Deleted: 3 deleted",
        `Deleting: Custom Resource ${name} is being deleted`,
        "Updated: 1 updated",
        "Updated: 3 created",
      ]);
      expect(events.every(({ reportingController }) => reportingController === "kindstack.dev/operator")).toBe(true);
    });
  });
});
