import { describe, expect, it } from "vitest";
import { DELETION_POLICY_ANNOTATION, STATE_MISSING_ANNOTATION } from "../../../stacks/contract/annotations";
import { statusOf } from "../../../stacks/contract/kind";
import type { Mode } from "../../../stacks/contract/mode";
import { memcached } from "../../../stacks/kinds/memcached/kind";
import { destroyed, type Harness, kindWith, reconciled } from "./harness";

describe("an object whose state is lost", () => {
  /** Of a kind that does not find by marks what it made. */
  async function lost(kind = kindWith({ providers: [] })): Promise<Harness> {
    const harness = await reconciled(kind);
    expect(harness.synced()?.status).toBe("True");
    harness.lost = true;
    return harness;
  }
  const survey = (harness: Harness, isListed: boolean) => harness.reconciler.noteStackSurvey(harness.object, isListed);
  async function told(): Promise<Harness> {
    const harness = await lost();
    expect(survey(harness, false)).toBe(true);
    expect(await harness.reconcile()).toBe("done");
    expect(harness.stalled()).toMatchObject({ status: "True", reason: "StateMissing" });
    expect(harness.synced()).toMatchObject({ status: "False", reason: "StateMissing" });
    return harness;
  }

  it("is told of when a survey misses its stack, and once", async () => {
    const harness = await told();
    expect(harness.events.at(-1)).toBe("StateMissing");
    expect(survey(harness, false)).toBe(false);
    expect(await harness.reconcile()).toBe("done");
    expect(harness.updates).toBe(1);
    expect(statusOf(harness.object).stack).toBeDefined();
  });

  it("is updated as soon as its stack is there again", async () => {
    const harness = await told();
    harness.lost = false;
    expect(survey(harness, true)).toBe(true);
    expect(await harness.reconcile()).toBe("done");
    expect(harness.synced()?.status).toBe("True");
    expect(survey(harness, true)).toBe(false);
  });

  it("is made once more when a user decides so, and the decision is removed", async () => {
    const harness = await told();
    harness.decide("Recreate");
    expect(await harness.reconcile()).toBe("done");
    expect(harness.updates).toBe(2);
    expect(harness.synced()?.status).toBe("True");
    expect(harness.object.metadata.annotations).toEqual({});
    expect(harness.notes.join()).toContain("were created again");
    harness.lost = true;
    harness.changeSpec();
    await harness.reconcile();
    expect(harness.stalled()?.reason).toBe("StateMissing");
  });

  it("is not adopted where a plugin would make it once more", async () => {
    const harness = await told();
    harness.planned = [{ urn: "urn", type: "keyring:index:Key", name: "key", operation: "create", ofPlugin: true }];
    harness.decide("Adopt");
    expect(await harness.reconcile()).toBe("done");
    expect(harness.stalled()?.message).toContain("a plugin cannot adopt keyring:index:Key key");
    expect(harness.updates).toBe(1);
    expect(await harness.reconcile()).toBe("done");
    expect(harness.previews).toBe(1);
  });

  it("says of a decision for its deletion that it waits for that", async () => {
    const harness = await told();
    harness.decide("Forget");
    expect(await harness.reconcile()).toBe("done");
    expect(harness.stalled()?.message).toContain("is Forget, which takes effect when the object is deleted");
    expect(harness.updates).toBe(1);
    expect(harness.object.metadata.annotations).toEqual({ [STATE_MISSING_ANNOTATION]: "Forget" });
  });

  it("is adopted where its provider finds it", async () => {
    const harness = await told();
    harness.planned = [{ urn: "urn", type: "pulumi-nodejs:dynamic/own:Thing", name: "thing", operation: "create" }];
    harness.decide("Adopt");
    await harness.reconcile();
    expect(harness.updates).toBe(2);
    expect(harness.object.metadata.annotations).toEqual({});
  });

  it("loses a decision that it does not need", async () => {
    const harness = await lost();
    harness.lost = false;
    harness.decide("Recreate");
    await harness.reconcile();
    expect(harness.object.metadata.annotations).toEqual({});
    expect(harness.events).not.toContain("StateMissing");
  });

  it("takes over what its marks lead to, and says so", async () => {
    const harness = await lost(memcached);
    survey(harness, false);
    await harness.reconcile();
    expect(harness.synced()?.status).toBe("True");
    expect(harness.events).toContain("StateMissing");
    expect(harness.updates).toBe(2);
  });

  it("is not deleted before a user decides", async () => {
    const harness = await lost();
    harness.delete();
    for (const decision of [undefined, "Recreate"]) {
      harness.decide(decision);
      expect(await harness.reconcile()).toBe("retry");
      expect(harness.stalled()).toMatchObject({ status: "True", reason: "StateMissing" });
      expect(harness.reconciling()?.reason).toBe("Deleting");
    }
    expect(harness.stalled()?.message).toContain("is Recreate, which has no effect on a deletion");
    expect([harness.released, harness.forgotten, harness.updates]).toEqual([[], [], 1]);
    harness.decide("Forget");
    harness.remove();
    harness.destroys.push(destroyed({}, { found: false }));
    expect(await harness.reconcile()).toBe("done");
    expect(harness.forgotten).toHaveLength(1);
  });

  it.each([
    ["when a user decides so", kindWith({ providers: [] }), "Adopt"],
    ["where its marks lead to all", memcached, undefined],
  ])("is taken over before it is deleted %s", async (_, kind, decision) => {
    const harness = await lost(kind);
    harness.delete();
    harness.decide(decision);
    harness.destroys.push(destroyed());
    expect(await harness.settle()).toBe("done");
    expect([harness.updates, harness.released]).toEqual([2, [false]]);
  });

  it("is deleted by its marks alone where it cannot be taken over", async () => {
    const harness = await lost(memcached);
    harness.delete();
    harness.refusal = { errorClass: "retryable", reason: "QuotaExceeded", message: "exceeded quota" };
    harness.remove();
    harness.destroys.push(destroyed({}, { found: false }));
    expect(await harness.settle()).toBe("done");
    expect(harness.released).toEqual([false]);
    expect(harness.forgotten).toHaveLength(1);
  });

  it("is released without its state", async () => {
    const harness = await lost();
    harness.delete();
    harness.remove();
    harness.setMetadata({ annotations: { [DELETION_POLICY_ANNOTATION]: "Orphan" } });
    harness.destroys.push(destroyed({}, { found: false }));
    expect(await harness.reconcile()).toBe("done");
    expect(harness.released).toEqual([true]);
  });

  it.each<Mode>(["Observe", "Propose"])("is told of in the mode %s", async (mode) => {
    const harness = await lost();
    harness.mode = mode;
    await harness.reconcile();
    survey(harness, false);
    await harness.reconcile();
    expect(harness.stalled()?.reason).toBe("StateMissing");
    expect(harness.plan).toBeUndefined();
  });
});
