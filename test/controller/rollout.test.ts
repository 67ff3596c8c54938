import { describe, expect, it } from "vitest";
import type { ErrorClass } from "../../providers/errors";
import type { Action } from "../../src/controller/action";
import { Rollout, type RolloutPolicy } from "../../src/controller/rollout";
import { facts } from "./facts";

/** Ten objects that ask in order, and are requeued as the queue would do it. */
function rolloutOf(policy: Partial<RolloutPolicy> = {}) {
  const keys = Array.from({ length: 10 }, (_, index) => `object-${index}`);
  const requeued: string[] = [];
  const rollout = new Rollout({
    budget: 0.2,
    maxFailures: 2,
    total: () => keys.length,
    requeue: (key) => requeued.push(key),
    ...policy,
  });
  return { rollout, keys, requeued, ask: () => keys.filter((key) => rollout.begin(key)) };
}

/** A reconcile of an object that had the former version has ended. */
function reconciled(
  rollout: Rollout,
  key: string,
  type: "updated" | "updateFailed" | "rests",
  { errorClass = "terminal", rolledOut = true }: { errorClass?: ErrorClass; rolledOut?: boolean } = {},
): void {
  const found = facts({ status: { stack: { name: key, program: "former" } }, program: "new", rolledOut });
  const failures = [{ errorClass }];
  rollout.reconciled(key, found, { type: "update" } as Action, { type, failures });
}

describe("a rollout", () => {
  it("reaches all objects, each once", () => {
    const { rollout, ask, requeued } = rolloutOf();
    const updated: string[] = [];
    let batch = ask();
    while (batch.length > 0) {
      updated.push(...batch);
      for (const key of batch) reconciled(rollout, key, "updated");
      batch = requeued.splice(0).filter((key) => rollout.begin(key));
    }
    expect(updated).toHaveLength(10);
    expect(new Set(updated).size).toBe(10);
    expect(rollout.counts).toEqual({ waiting: 0, updating: 0, failed: 0, stopped: false });
  });

  it("stops when too many have failed, and continues when they succeed", () => {
    const { rollout, ask, requeued } = rolloutOf();
    ask();
    reconciled(rollout, "object-0", "updateFailed");
    reconciled(rollout, "object-1", "updateFailed");
    expect(rollout.counts).toEqual({ waiting: 8, updating: 0, failed: 2, stopped: true });
    expect([requeued, rollout.admits("object-2")]).toEqual([[], false]);
    reconciled(rollout, "object-0", "updated");
    expect(rollout.counts.stopped).toBe(false);
    expect(requeued).toEqual(["object-2", "object-3"]);
  });

  it("drops an object that is gone, and does not wait for it", () => {
    const { rollout, ask, requeued } = rolloutOf({ maxFailures: 1 });
    ask();
    reconciled(rollout, "object-0", "updateFailed");
    rollout.drop("object-0");
    rollout.drop("object-1");
    rollout.drop("object-2");
    expect(requeued.slice(-2)).toEqual(["object-3", "object-4"]);
    expect(rollout.counts).toEqual({ waiting: 7, updating: 0, failed: 0, stopped: false });
  });

  it("does not take an update for failed that waits for something else to end", () => {
    const { rollout, ask } = rolloutOf({ maxFailures: 1 });
    ask();
    reconciled(rollout, "object-0", "updateFailed", { errorClass: "pending" });
    expect(rollout.counts).toEqual({ waiting: 8, updating: 2, failed: 0, stopped: false });
  });

  it("requeues what it did not admit, also when the batch ended during that object's reconcile", () => {
    const { rollout, keys, requeued } = rolloutOf();
    for (const key of keys.slice(0, 2)) rollout.begin(key);
    reconciled(rollout, "object-2", "rests", { rolledOut: false });
    expect(requeued).toEqual([]);
    for (const key of keys.slice(0, 2)) reconciled(rollout, key, "updated");
    expect(requeued).toEqual(["object-2"]);
    reconciled(rollout, "object-3", "rests", { rolledOut: false });
    expect(requeued).toEqual(["object-2", "object-3"]);
  });

  it("updates at least one object at a time", () => {
    expect(rolloutOf({ budget: 0.01 }).ask()).toEqual(["object-0"]);
  });
});
