import { describe, expect, it } from "vitest";
import { RetryableError } from "../../../providers/errors";
import type { Fence } from "../../../providers/fence";
import type { Refusal } from "../../../src/backend/ownership";
import { Harness, reconciled } from "./harness";

describe("a reconcile of a shard that is lost", () => {
  const check = () => {
    throw new RetryableError("LeaseLost", "another replica continues");
  };
  const lost: Fence = { check, signal: AbortSignal.abort() };

  it.each<[string, (harness: Harness) => void]>([
    ["an update", () => {}],
    ["an update with its first finalizer", (harness) => delete harness.object.metadata.finalizers],
    ["a destroy", (harness) => void harness.delete()],
    ["a proposal", (harness) => Object.assign(harness, { mode: "Propose" })],
    ["a preview", (harness) => Object.assign(harness, { mode: "Observe" })],
  ])("writes neither the object nor its stack: %s", async (_, prepare) => {
    const harness = new Harness();
    prepare(harness);
    const before = structuredClone(harness.object);
    await harness.reconcile(lost).catch(() => "refused");
    expect(harness.object).toEqual(before);
    expect([harness.updates, harness.released, harness.plan]).toEqual([0, [], undefined]);
  });
});

describe("while the state's backend is not the operator's", () => {
  const refused = { dependency: "the state's backend" };
  const message = "the state's backend belongs to another cluster";
  const refusal: Refusal = { errorClass: "retryable", reason: "BackendForeign", message, ...refused };

  it("nothing is updated or destroyed, and the object says why", async () => {
    const harness = new Harness();
    harness.backend.refusal = refusal;
    expect(await harness.reconcile()).toEqual(refused);
    expect(harness.synced()).toMatchObject({ status: "False", reason: "BackendForeign", message });
    harness.delete();
    expect(await harness.settle()).toEqual(refused);
    expect(harness.synced()).toMatchObject({ status: "False", reason: "DeletionFailed" });
    expect(harness.synced()?.message).toContain(message);
    expect([harness.updates, harness.released]).toEqual([0, []]);
  });

  it("nothing is previewed for an object that is only observed", async () => {
    const harness = new Harness();
    harness.mode = "Observe";
    harness.backend.refusal = refusal;
    expect(await harness.reconcile()).toEqual(refused);
    expect(harness.synced()).toMatchObject({ status: "False", reason: "BackendForeign" });
    expect(harness.previews).toBe(0);
  });

  it("an object at rest is stalled, and no more afterwards, without an update", async () => {
    const harness = await reconciled();
    harness.backend.refusal = refusal;
    expect(await harness.reconcile()).toBe("done");
    expect(harness.stalled()).toMatchObject({ status: "True", reason: "BackendForeign", message });
    expect(harness.synced()?.status).toBe("True");
    harness.backend.refusal = undefined;
    expect(await harness.reconcile()).toBe("done");
    expect(harness.stalled()).toBeUndefined();
    expect(harness.updates).toBe(1);
  });

  it("a failure that only the user can correct is told of again afterwards", async () => {
    const harness = new Harness();
    harness.refusal = { errorClass: "terminal", reason: "Invalid", message: "wrong" };
    await harness.reconcile();
    harness.backend.refusal = refusal;
    await harness.reconcile();
    expect(harness.stalled()?.reason).toBe("BackendForeign");
    harness.backend.refusal = undefined;
    await harness.reconcile();
    expect(harness.stalled()).toMatchObject({ status: "True", reason: "Invalid", message: "wrong" });
    expect(harness.updates).toBe(1);
  });
});
