import { describe, expect, it } from "vitest";
import { OBJECT_STUB } from "../../../providers/kubernetes/object";
import type { PlannedChange } from "../../../src/automation/planned-changes";
import { statusOf } from "../../../stacks/contract/kind";
import { DEPLOYMENT, destroyed, Harness, reconciled } from "./harness";

describe("an object that is only observed", () => {
  const deployment = (size: number) => ({ ...DEPLOYMENT, spec: { replicas: size } });
  const change: PlannedChange = {
    ...({ urn: "urn:pulumi:s::kindstack::t::deployment/cache", type: "t:Deployment" } as const),
    name: "deployment/cache",
    operation: "update",
    old: { inputs: { manifest: deployment(1) }, outputs: { manifest: deployment(1) } },
    inputs: { manifest: deployment(3) },
  };

  function neverApplied(): Harness {
    const harness = new Harness();
    harness.mode = "Observe";
    const { finalizers: __, ...metadata } = harness.object.metadata;
    harness.object = { ...harness.object, metadata };
    harness.deployment = undefined;
    const { old: _, inputs, ...created } = change;
    const owner = { uid: "uid-cache", description: "Memcached default/cache" };
    harness.planned = [{ ...created, operation: "create", inputs: { ...inputs, __provider: OBJECT_STUB, owner } }];
    return harness;
  }

  /** One that was applied, and changed since. */
  async function changedLater(): Promise<Harness> {
    const harness = await reconciled();
    harness.mode = "Observe";
    harness.planned = [change];
    harness.changeSpec();
    await harness.reconcile();
    return harness;
  }

  it("gets a status and nothing else when it was never applied", async () => {
    const harness = neverApplied();
    expect(await harness.reconcile()).toBe("done");
    expect(harness.updates).toBe(0);
    expect(harness.object.metadata.finalizers).toBeUndefined();
    const message = "only observed; an update would: create Deployment deployment/cache";
    expect(harness.synced()).toMatchObject({ status: "False", reason: "Observed", message, observedGeneration: 1 });
    expect(harness.ready()).toMatchObject({ status: "False", reason: "Observed" });
    expect(harness.reconciling()).toBeUndefined();
    expect(statusOf(harness.object)).toMatchObject({ mode: "Observe", observedGeneration: 1 });
    expect(statusOf(harness.object).stack).toBeUndefined();
    expect(harness.events).toEqual(["Observed"]);
  });

  it("is previewed once, and again when it has changed", async () => {
    const harness = neverApplied();
    await harness.reconcile();
    await harness.reconcile();
    expect(harness.previews).toBe(1);
    harness.changeSpec();
    await harness.reconcile();
    expect(harness.previews).toBe(2);
  });

  it("keeps what runs Ready, says what would change, and is applied again in full", async () => {
    const harness = await changedLater();
    expect(harness.synced()?.message).toBe(
      "only observed; an update would: update Deployment deployment/cache: spec.replicas 1 → 3",
    );
    const message = "what was applied last is ready";
    expect(harness.ready()).toMatchObject({ status: "True", message, observedGeneration: 2 });
    expect([harness.updates, harness.loosened]).toEqual([1, 0]);

    harness.mode = "Apply";
    await harness.reconcile();
    expect([harness.updates, harness.loosened]).toEqual([2, 1]);
    expect(harness.events).toContain("ModeLoosened");
    expect(harness.synced()?.status).toBe("True");
    expect(statusOf(harness.object).mode).toBeUndefined();
  });

  it("is told of a less strict mode once, however often the update of it is interrupted", async () => {
    const harness = await changedLater();

    harness.mode = "Apply";
    harness.interrupted = true;
    expect([await harness.reconcile(), await harness.reconcile()]).toEqual(["retry", "retry"]);
    harness.interrupted = false;
    await harness.reconcile();
    expect(harness.events.filter((reason) => reason === "ModeLoosened")).toHaveLength(1);
    expect(harness.loosened).toBe(1);
  });

  it("leaves all that it made when it is deleted", async () => {
    const harness = await reconciled();
    harness.mode = "Observe";
    harness.destroys.push(destroyed());
    harness.delete();
    await harness.reconcile();
    expect(harness.released).toEqual([true]);
  });
});
