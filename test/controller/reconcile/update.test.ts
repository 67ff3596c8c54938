import { setImmediate } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { UpdateFailure } from "../../../src/automation/event-log";
import type { Result } from "../../../src/controller/context";
import { statusOf } from "../../../stacks/contract/kind";
import { counting, DEPLOYMENT, fieldConflict, Harness, KEY, kindWith, reconciled } from "./harness";

describe("an update that has to wait until something is gone", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  const object = { ...DEPLOYMENT, metadata: { name: "cache", namespace: "default", uid: "d" } };
  const refusal = { errorClass: "pending", reason: "Terminating", message: "is being deleted", object } as const;
  async function waiting(refusal: UpdateFailure): Promise<Harness> {
    const harness = new Harness();
    harness.refusal = refusal;
    expect(await harness.reconcile()).toEqual({ requeueAfterMs: expect.any(Number) });
    return harness;
  }

  it("says so without an event, and is not repeated while that is there", async () => {
    const harness = await waiting(refusal);
    expect(harness.ready()).toMatchObject({ status: "False", reason: "Terminating", message: "is being deleted" });
    expect(harness.reconciling()).toMatchObject({ status: "True", reason: "Waiting" });
    expect(harness.events).toEqual([]);
    for (let minute = 0; minute < 10; minute++) {
      vi.advanceTimersByTime(60_000);
      await harness.reconcile();
    }
    expect(harness.updates).toBe(1);
    expect(harness.ready()?.message).toBe("Deployment cache is being deleted");
  });

  it("is repeated as soon as a cache shows that it is gone", async () => {
    const harness = await waiting(refusal);
    harness.remove();
    harness.refusal = undefined;
    expect(await harness.reconcile()).toBe("done");
    expect(harness.ready()?.status).toBe("True");
    expect(harness.reconciling()).toBeUndefined();
  });

  it("is repeated after a modest time where nothing shows what it waits for", async () => {
    const { object: _, ...unnamed } = refusal;
    const harness = await waiting(unnamed);
    for (const updates of [2, 3, 4]) {
      vi.advanceTimersByTime(5_000);
      expect(await harness.reconcile()).toEqual({ requeueAfterMs: 5_000 });
      expect(harness.updates).toBe(updates);
    }
  });
});

it("an update that is interrupted is not over before the report of its progress has landed", async () => {
  const harness = await reconciled();
  harness.request();
  harness.interrupted = true;
  const landed = Promise.withResolvers<void>();
  harness.statusWrites = landed.promise;
  const over = vi.fn();
  const ending = harness.reconcile().finally(over);
  await setImmediate();
  expect(harness.updates).toBe(2);
  expect(over).not.toHaveBeenCalled();
  landed.resolve();
  expect(await ending).toBe("retry");
});

describe("what a provider tells of a long update", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it("is in the status after a while, as one line of bounded length", async () => {
    const harness = await reconciled();
    harness.request();
    const messages: (string | undefined)[] = [];
    harness.inUpdate = async (context) => {
      for (let step = 0; step < 100; step++) {
        context?.progress(`step ${step}`);
        await vi.advanceTimersByTimeAsync(100);
        messages.push(harness.reconciling()?.message);
      }
      context?.progress(`\u001b[2J${"x".repeat(1_000)}`);
      await vi.advanceTimersByTimeAsync(5_000);
      expect(harness.reconciling()?.message).toMatch(/: \\u001b\[2Jx+…$/);
      expect(harness.reconciling()?.message.length).toBeLessThan(300);
    };
    await harness.reconcile();
    const [before, ...told] = new Set(messages);
    expect(before).toBe("comparing all resources, as requested");
    expect(told).toEqual([`${before}: step 49`, `${before}: step 99`]);
    expect(harness.reconciling()).toBeUndefined();
  });
});

describe("an update that is refused for good", () => {
  const REFUSAL: UpdateFailure = { errorClass: "terminal", reason: "Conflict", message: "belongs to another object" };

  it("says so again when others write that it is Ready, without another update", async () => {
    const harness = new Harness();
    harness.refusal = REFUSAL;
    await harness.reconcile();
    const written = statusOf(harness.object);
    const forged = { type: "Ready", status: "True", reason: "Succeeded", message: "", observedGeneration: 1 };
    for (const status of [{ ...written, conditions: [{ ...forged, lastTransitionTime: "" }] }, undefined]) {
      harness.object = { ...harness.object, status };
      expect(await harness.reconcile()).toBe("done");
      expect(harness.ready()).toMatchObject({ status: "False", reason: REFUSAL.reason });
      expect(harness.stalled()?.status).toBe("True");
    }
    expect(harness.updates).toBe(1);
  });

  it("is tried again when what refused it went while it ran", async () => {
    const harness = new Harness();
    harness.refusal = REFUSAL;
    harness.program.mockImplementationOnce(() => harness.reconciler.reconsider(KEY));
    expect(await harness.reconcile()).toBe("retry");

    harness.refusal = undefined;
    expect(await harness.reconcile()).toBe("done");
    expect(harness.updates).toBe(2);
  });
});

describe("an object that is maintained", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it("is reconciled again after its first update: a predecessor may have made what will bring no event", async () => {
    const maintain = vi.fn(async () => undefined);
    const harness = new Harness(kindWith({ maintain }));

    expect(await harness.reconcile()).toEqual({ requeueAfterMs: expect.any(Number) });
    expect(maintain).not.toHaveBeenCalled();
    expect(await harness.reconcile()).toBe("done");

    expect(maintain).toHaveBeenCalledOnce();
    expect(harness.updates).toBe(1);
  });

  it("is looked at again when its maintenance asks for it, though a repair waits for longer", async () => {
    const maintain = vi.fn(async () => ({ requeueAfterMs: 1_000 }));
    const harness = await fieldConflict(new Harness(kindWith({ maintain })));
    harness.edit();
    expect(await harness.reconcile()).toEqual({ requeueAfterMs: 1_000 });
  });
});

it("an update that succeeded is recorded though its progress could not be reported, and not repeated", async () => {
  const harness = await reconciled();
  harness.request();
  harness.refusedWrites = 1;
  expect(await harness.reconcile()).toBe("done");
  expect(statusOf(harness.object).lastHandledReconcile).toBe("now");
  expect(await harness.reconcile()).toBe("done");
  expect(harness.updates).toBe(2);
});

describe("what an update failed for", () => {
  const failure: UpdateFailure = { errorClass: "retryable", reason: "TableMissing", message: "no table" };
  it.each<[string, UpdateFailure, Result]>([
    ["is waited for with others that need it", { ...failure, dependency: "table a" }, { dependency: "table a" }],
    ["is waited for by the object alone where nothing else depends on it", failure, "retry"],
    ["is the operator's own trouble", { ...failure, reason: "NoEngine" }, { dependency: "NoEngine" }],
    ["is what the user has to correct", { ...failure, errorClass: "terminal", dependency: "table a" }, "done"],
  ])("%s", async (_, refusal, result) => {
    const harness = new Harness();
    harness.refusal = refusal;
    expect(await harness.reconcile()).toEqual(result);
  });
});

it("a record of another stack, as a copy of another object has it, does not count: what is in that stack is adopted into the object's own", async () => {
  const harness = await reconciled();
  const { stack, ...status } = statusOf(harness.object);
  harness.object = { ...harness.object, status: { ...status, stack: { ...stack, name: "memcacheds.default.0" } } };
  await harness.reconcile();
  expect(harness.updates).toBe(2);
  expect(statusOf(harness.object).stack?.name).toMatch(/^memcached\.default\.cache-/);
});

it("an update whose program needs a type that is not served fails with a condition that says so", async () => {
  const harness = new Harness(counting({ needsReconcile: () => [] }));
  harness.unserved = true;
  await harness.reconcile();
  expect(harness.ready()).toMatchObject({ status: "False", reason: "UnknownKind" });
});

describe("an object that was restored from a backup", () => {
  it("is updated with a refresh once, though its status says that it is as specified", async () => {
    const harness = await reconciled();
    harness.changeSpec();
    await harness.reconcile();
    harness.reconciler.noteRestored(KEY);
    expect(await harness.reconcile()).toBe("done");
    expect(await harness.reconcile()).toBe("done");
    expect(harness.causes).toEqual(["Creating", "Updating", "Refreshing"]);
  });

  it("is updated to another spec of a generation whose update was refused for good", async () => {
    const harness = await reconciled();
    const restored = harness.object;
    harness.refusal = { errorClass: "terminal", reason: "Conflict", message: "belongs to another object" };
    harness.changeSpec();
    await harness.reconcile();
    harness.refusal = undefined;
    harness.object = restored;
    harness.changeSpec();
    expect(await harness.reconcile()).toBe("done"); // as the same generation, it is refused
    expect(harness.updates).toBe(2);

    harness.reconciler.noteRestored(KEY);
    await harness.reconcile();
    expect(harness.updates).toBe(3);
    expect(harness.synced()).toMatchObject({ status: "True", observedGeneration: 2 });
  });
});

describe("what an update of which no one saw the end has made", () => {
  const removeUntracked = vi.fn(async () => ["row a of table public.students"]);
  const findDrift = async () => ({ drifted: new Map(), unknown: new Map() });
  beforeEach(() => void removeUntracked.mockClear());

  it("is removed after the next success, except what that one has, and not again", async () => {
    const harness = await reconciled(kindWith({ external: { findDrift, removeUntracked } }));
    expect(removeUntracked).toHaveBeenCalledExactlyOnceWith(
      { uid: "uid-cache", description: "Memcached.cache.example.com/default/cache" },
      [expect.objectContaining({ manifest: DEPLOYMENT })],
      { release: false },
      expect.objectContaining({ object: expect.objectContaining({ name: "cache", uid: "uid-cache" }) }),
    );
    expect(harness.notes).toContain("removed row a of table public.students, which its stack did not have");
    harness.edit();
    await harness.reconcile();
    expect(removeUntracked).toHaveBeenCalledOnce();
  });

  it("keeps the object from being Ready as long as it cannot be removed", async () => {
    removeUntracked.mockRejectedValueOnce(new Error("the database is away"));
    const harness = new Harness(kindWith({ external: { findDrift, removeUntracked } }));
    const ready = () => harness.ready()?.status;
    expect(await harness.reconcile()).toBe("retry");
    expect(ready()).toBe("False");
    expect(await harness.reconcile()).toBe("done");
    expect(ready()).toBe("True");
    expect(removeUntracked).toHaveBeenCalledTimes(2);
  });
});
