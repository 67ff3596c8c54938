import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { LiveObject } from "../../../providers/kubernetes/client";
import { REVERTS_OF_CONFLICT } from "../../../src/controller/repairs";
import type { Maintenance } from "../../../stacks/contract/capabilities";
import { objectId } from "../../../stacks/contract/object";
import { memcached } from "../../../stacks/kinds/memcached/kind";
import { counting, DEPLOYMENT, fieldConflict, Harness, kindWith, reconciled } from "./harness";

/** Not a moment earlier. @param before how many updates there were */
async function expectUpdateAfter(harness: Harness, before: number, seconds: number): Promise<void> {
  vi.advanceTimersByTime(seconds * 1_000 - 1);
  await harness.reconcile();
  expect(harness.updates).toBe(before);
  vi.advanceTimersByTime(1);
  await harness.reconcile();
  expect(harness.updates).toBe(before + 1);
}

describe("a conflict", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it("is told in a condition and an event, with the field and its other manager", async () => {
    const harness = await fieldConflict();
    expect(harness.fieldConflict()).toMatchObject({
      status: "True",
      reason: "RepairsReverted",
      message: expect.stringContaining("Deployment default/cache: spec.replicas is 5 in place of 1: set by someone"),
    });
    expect(harness.events.filter((reason) => reason === "FieldConflict")).toHaveLength(1);
  });

  it("is also one when what was made is deleted again and again", async () => {
    const harness = await reconciled();
    for (let repair = 0; repair < REVERTS_OF_CONFLICT; repair++) {
      harness.remove();
      await harness.reconcile();
    }
    expect(harness.fieldConflict()).toMatchObject({
      status: "True",
      message: expect.stringContaining("Deployment default/cache is deleted by another client"),
    });
  });

  it("is not answered until the time has come, and each time later", async () => {
    const harness = await fieldConflict();
    for (const seconds of [10, 20, 40]) {
      harness.edit();
      const before = harness.updates;
      expect(await harness.reconcile()).toEqual({ requeueAfterMs: seconds * 1_000 });
      await expectUpdateAfter(harness, before, seconds);
    }
  });

  it("is not over for a restart of the operator, nor for an update by a new version of it", async () => {
    const before = await fieldConflict();
    const harness = new Harness(memcached, "changed");
    harness.object = before.object;
    expect(await harness.reconcile()).toMatchObject({ requeueAfterMs: expect.any(Number) });
    expect(harness.updates).toBe(1);
    expect(harness.fieldConflict()?.status).toBe("True");
    expect(harness.synced()).toMatchObject({ status: "False", reason: "FieldConflict" });

    harness.edit();
    await harness.reconcile();
    expect(harness.fieldConflict()?.status).toBe("True");
    vi.advanceTimersByTime(120_000);
    await harness.reconcile();
    expect(harness.fieldConflict()).toMatchObject({ status: "False", reason: "Settled" });
  });

  it.each<[string, (harness: Harness) => void]>([
    ["changes the spec", (harness) => harness.changeSpec()],
    ["asks for an update", (harness) => harness.request()],
  ])("is over when its author %s, until it is found again", async (_, act) => {
    const harness = await fieldConflict();
    act(harness);
    await harness.reconcile();
    expect(harness.fieldConflict()).toMatchObject({ status: "False", reason: "Settled" });
    expect(harness.synced()?.status).toBe("True");
    harness.edit();
    expect(await harness.reconcile()).toBe("done");
    expect(harness.fieldConflict()?.status).toBe("False");
  });

  it("is told of any pace, and over when a repair stays for longer than any before", async () => {
    const harness = await fieldConflict(new Harness(), 15_000);
    const { events, updates } = harness;
    expect(await harness.reconcile()).toEqual({ requeueAfterMs: 30_000 });
    vi.advanceTimersByTime(29_000);
    expect(await harness.reconcile()).toEqual({ requeueAfterMs: 1_000 });
    expect(harness.fieldConflict()?.status).toBe("True");
    vi.advanceTimersByTime(1_000);
    expect(await harness.reconcile()).toBe("done");
    expect(harness.fieldConflict()).toMatchObject({ status: "False", reason: "Settled" });
    expect(harness.synced()?.status).toBe("True");
    expect([events.length, harness.updates]).toEqual([harness.events.length, updates]);

    const before = harness.updates;
    harness.edit();
    expect(await harness.reconcile()).toBe("done");
    expect(harness.updates).toBe(before + 1);
    expect(harness.fieldConflict()?.status).toBe("False");
  });
});

describe("what ends by itself again and again", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  /** Which of these the harness's Deployment is. */
  const completed = (owned: readonly LiveObject[]) => owned.filter(({ status }) => status === "ended").map(objectId);
  /** An object whose replacement has ended as well. */
  async function failing(others: () => string[] = () => []): Promise<Harness> {
    const needsReconcile = (_: unknown, owned: readonly LiveObject[]) => [...completed(owned), ...others()];
    const harness = await reconciled(counting({ needsReconcile, completed }));
    harness.end();
    expect(await harness.reconcile()).toBe("done");
    expect(harness.updates).toBe(2);
    harness.end();
    return harness;
  }

  it("is replaced at once, and then later each time", async () => {
    const harness = await failing();
    for (const seconds of [10, 20, 40, 80, 160, 300, 300]) {
      const before = harness.updates;
      expect(await harness.reconcile()).toEqual({ requeueAfterMs: seconds * 1_000 });
      expect(harness.reconciling()).toMatchObject({ status: "True", reason: "BackOff" });
      await expectUpdateAfter(harness, before, seconds);
      expect(harness.reconciling()).toBeUndefined();
      harness.end();
    }
  });

  it("is told in a condition and one event, which are over when a user removes it", async () => {
    const harness = await failing();
    await harness.reconcile();
    await harness.reconcile();
    expect(harness.reconciling()?.message).toContain("apps/v1/Deployment/default/cache");
    expect(harness.events.filter((reason) => reason === "BackOff")).toHaveLength(1);

    harness.mend();
    expect(await harness.reconcile()).toBe("done");
    expect(harness.reconciling()).toBeUndefined();
  });

  it("does not keep what is missing besides from being repaired: what waits is left as it is", async () => {
    let missing: string[] = [];
    const harness = await failing(() => missing);
    expect(await harness.reconcile()).toEqual({ requeueAfterMs: 10_000 });
    const before = harness.updates;

    missing = ["1 instead of 2"];
    expect(await harness.reconcile()).toEqual({ requeueAfterMs: expect.any(Number) });

    expect(harness.updates).toBe(before + 1);
    const { owned = [] } = harness.program.mock.lastCall?.[1] ?? {};
    expect(completed(owned)).toEqual([]);
    expect(owned).toHaveLength(1);
    missing = [];
    harness.end();
    expect(await harness.reconcile()).toEqual({ requeueAfterMs: 10_000 });
    expect(harness.updates).toBe(before + 1);
  });
});

it("a kind whose resources are compared from time to time is reconciled when that is due, and tells only what was corrected", async () => {
  const harness = new Harness({ ...memcached, capabilities: { ...memcached.capabilities, refreshEvery: 60 } });
  expect(await harness.reconcile()).toEqual({ requeueAfterMs: expect.any(Number) });
  const clock = vi.spyOn(performance, "now");
  const now = performance.now();
  clock.mockReturnValue(now + 61_000);
  expect(await harness.reconcile()).toEqual({ requeueAfterMs: 60_000 });
  expect(harness.updates).toBe(2);
  clock.mockReturnValue(now + 62_000);
  expect(await harness.reconcile()).toEqual({ requeueAfterMs: 59_000 });
  expect(harness.updates).toBe(2);
  clock.mockRestore();
});

describe("a clock that is set back", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());
  const setBack = () => vi.setSystemTime(Date.now() - 24 * 3_600_000);

  it("does not put off repairs", async () => {
    const harness = await reconciled();
    harness.edit();
    await harness.reconcile();
    const before = harness.updates;

    setBack();
    harness.edit();
    expect(await harness.reconcile()).toBe("done");
    expect(harness.updates).toBe(before + 1);
  });

  it("does not keep an object from being maintained", async () => {
    const maintain = vi.fn(async (_object: unknown, { apply }: Maintenance) => {
      await apply(DEPLOYMENT, "quota");
      return undefined;
    });
    const harness = await reconciled(kindWith({ maintain }));
    await harness.reconcile();
    expect(maintain).toHaveBeenCalledOnce();

    setBack();
    vi.advanceTimersByTime(1_000);
    await harness.reconcile();

    expect(maintain).toHaveBeenCalledTimes(2);
  });
});
