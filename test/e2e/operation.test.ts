import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { eventually } from "./eventually";
import { apply, eventsAbout, remove, tenant, uniqueName, untilGone, untilReady } from "./objects";
import { useOperator } from "./operator";

const operator = useOperator({ args: ["--drift-interval", "1"] });

describe("a running operator", () => {
  it("says that it is well and ready", async () => {
    expect(await operator.get("/healthz")).toEqual({ status: 200, text: "ok" });
    expect(await operator.get("/readyz")).toEqual({ status: 200, text: "ok" });
  });

  it("counts what it does under the names that controllers have in common", async () => {
    const name = uniqueName("counted");
    const controller = "tenants.multitenancy.codereliant.io";
    await apply(tenant(name));
    await untilReady(tenant(name));
    await remove(tenant(name));
    await untilGone(tenant(name));

    await eventually(async () => {
      expect(
        await operator.metric("controller_runtime_reconcile_total", { controller, result: "success" }),
      ).toBeGreaterThan(0);
      expect(await operator.metric("controller_runtime_active_workers", { controller })).toBe(0);
    });
    const updates = { kind: controller, result: "succeeded" };
    expect(await operator.metric("kindstack_updates_total", { ...updates, operation: "up" })).toBe(1);
    expect(await operator.metric("kindstack_updates_total", { ...updates, operation: "destroy" })).toBe(1);
    expect(await operator.metric("kindstack_resource_operations_total", { operation: "create" })).toBe(3);
    expect(await operator.metric("kindstack_resource_operations_total", { operation: "delete" })).toBe(3);
    expect(await operator.metric("workqueue_adds_total", { name: "kindstack" })).toBeGreaterThan(0);
    expect(await operator.metric("workqueue_depth", { name: "kindstack" })).toBe(0);
    expect(await operator.metric("process_resident_memory_bytes")).toBeGreaterThan(0);
  });

  it("tells by Events what it did to an object", async () => {
    const name = uniqueName("told");
    const object = await apply(tenant(name));
    await untilReady(tenant(name));
    await apply(tenant(name, { adminEmail: "new@example.com" }));
    await untilReady(tenant(name));
    await remove(tenant(name));
    await untilGone(tenant(name));
    await eventually(async () => {
      const events = await eventsAbout(object);
      expect(events.map(({ reason, note }) => `${reason}: ${note}`).sort()).toEqual([
        "Deleted: 3 deleted",
        "Updated: 1 updated",
        "Updated: 3 created",
      ]);
      expect(events.every(({ reportingController }) => reportingController === "kindstack.dev/operator")).toBe(true);
    });
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
    expect(lines.length).toBeGreaterThan(3);
    for (const line of lines) {
      expect(JSON.parse(line)).toEqual(expect.objectContaining({ level: expect.any(String), msg: expect.any(String) }));
    }
  });
});
