import { describe, expect, it } from "vitest";
import type { StackResource, UpdateFailure } from "../../../src/automation/event-log";
import { DELETION_POLICY_ANNOTATION, ORPHANED_ANNOTATION } from "../../../stacks/contract/annotations";
import { upResult } from "../../automation/up-result";
import { destroyed, Harness, KEY, kindWith, reconciled } from "./harness";

it("a destroy that is interrupted after a wait still knows what the one before has deleted", async () => {
  const harness = await reconciled();
  const pending = harness.delete();
  const gone = (name: string): StackResource => {
    return { urn: name, type: "pulumi-nodejs:dynamic/kubernetes:Pod", name, operation: "delete", outputs: {} };
  };
  const deleted = [gone("a"), gone("b")];
  harness.destroys.push(
    destroyed({ result: "failed", resourceChanges: { delete: 2 } }, { failures: [pending], deleted }),
    destroyed({ result: "failed", resourceChanges: { delete: 1 } }, { interrupted: true, deleted: [gone("d")] }),
    destroyed({ resourceChanges: { delete: 1 } }, { deleted: [gone("c")] }),
  );
  expect(await harness.reconcile()).toEqual({ requeueAfterMs: expect.any(Number) });
  harness.remove();
  expect(await harness.reconcile()).toBe("retry");
  expect(harness.notes.at(-1)).toBe("1 deleted: Pod d");
  expect(await harness.reconcile()).toBe("done");
  expect(harness.notes.at(-1)).toBe("3 deleted: Pod a; Pod b; Pod c");
});

it.each([
  ["by its annotation", { annotations: { [DELETION_POLICY_ANNOTATION]: "Orphan" } }],
  ["by a second deletion, with --cascade=orphan", { finalizers: ["orphan", "kindstack.dev/stack"] }],
])("a destroy that waits is over at once when what it waits for is to stay: %s", async (_, metadata) => {
  const harness = await reconciled();
  harness.destroys.push(destroyed({ result: "failed" }, { failures: [harness.delete()] }), destroyed());
  expect(await harness.reconcile()).toEqual({ requeueAfterMs: expect.any(Number) });
  harness.setMetadata({ ...metadata, resourceVersion: "999" });
  expect(await harness.reconcile()).toBe("done");
  expect(harness.released).toEqual([false, true]);
});

it("a destroy whose state cannot be read when its wait is over says so", async () => {
  const harness = await reconciled();
  const pending = harness.delete();
  const unreadable: UpdateFailure = { errorClass: "retryable", reason: "Unreadable", message: "away" };
  const failedBy = (failure: UpdateFailure) => destroyed({ result: "failed" }, { failures: [failure] });
  harness.destroys.push(failedBy(pending), failedBy(unreadable));
  await harness.reconcile();
  harness.remove();
  expect(await harness.reconcile()).toEqual({ dependency: "Unreadable" });
  expect(harness.ready()?.reason).toBe("DeletionFailed");
  expect(harness.events.at(-1)).toBe("DeletionFailed");
});

describe("a deletion with --cascade=orphan", () => {
  const deleting = (harness: Harness, annotations: Record<string, string>, ...finalizers: string[]) => {
    harness.destroys.push(upResult({ resourceChanges: { delete: 1 } }));
    harness.delete();
    harness.setMetadata({ annotations, finalizers: [...finalizers, "kindstack.dev/stack"] });
  };

  it.each([
    ["no record", {}],
    ["the record of an earlier one that was refused", { [ORPHANED_ANNOTATION]: "2025-12-31T00:00:00Z" }],
  ])("with %s keeps resources, and is recorded before the garbage collector forgets it", async (_, before) => {
    const harness = await reconciled();
    deleting(harness, before, "orphan");
    harness.reconciler.noteChange(harness.object);
    deleting(harness, before); // the garbage collector was quicker
    expect(await harness.reconcile()).toEqual({ requeueAfterMs: 0 });
    expect(harness.released).toEqual([]);
    expect(harness.object.metadata.annotations).toEqual({ [ORPHANED_ANNOTATION]: "2026-01-01T00:00:00Z" });
    await harness.reconcile();
    expect(harness.released).toEqual([true]);
  });

  it("is recorded once, though others remove the record", async () => {
    const harness = await reconciled();
    deleting(harness, {}, "orphan");
    harness.reconciler.noteChange(harness.object);
    await harness.reconcile();
    deleting(harness, {});
    await harness.reconcile();
    expect(harness.released).toEqual([true]);
    expect(harness.object.metadata.annotations).toEqual({});
  });

  it("that was refused has no effect on a plain deletion later", async () => {
    const harness = await reconciled();
    deleting(harness, { [ORPHANED_ANNOTATION]: "2025-12-31T00:00:00Z" });
    await harness.reconcile();
    expect(harness.released).toEqual([false]);
  });
});

describe("a deletion after an update that was cut off", () => {
  const own = () => new Harness(kindWith({ providers: [] }));
  const urn = (type: string) => `urn:pulumi:stack::kindstack::pulumi-nodejs:dynamic/${type}::thing`;
  const refusal = (rest: Partial<UpdateFailure> = {}): UpdateFailure => {
    return { errorClass: "retryable", reason: "ConnectionRefused", message: "away", urn: urn("own:Thing"), ...rest };
  };

  it("waits while that update cannot be finished: no mark leads to what it may have made", async () => {
    const harness = own();
    harness.refusal = refusal();
    harness.delete();
    for (const restart of [() => {}, () => {}, () => harness.reconciler.drop(KEY)]) {
      restart();
      expect(await harness.settle()).toBe("retry");
      expect(harness.synced()).toMatchObject({ status: "False", reason: "DeletionFailed" });
      expect(harness.synced()?.message).toContain("away");
      expect(harness.released).toEqual([]);
    }
    expect(harness.events).toContain("DeletionFailed");

    harness.refusal = undefined;
    harness.destroys.push(destroyed());
    expect(await harness.settle()).toBe("done");
    expect(harness.updates).toBe(4);
    expect(harness.released).toEqual([false]);
  });

  it("is finished once the state's backend is the operator's again", async () => {
    const harness = own();
    const foreign = { reason: "BackendForeign", message: "another's", dependency: "b" } as const;
    harness.backend.refusal = { errorClass: "retryable", ...foreign };
    harness.delete();
    expect(await harness.settle()).toEqual({ dependency: "b" });
    harness.backend.refusal = undefined;
    harness.destroys.push(destroyed());
    expect(await harness.settle()).toBe("done");
    expect(harness.updates).toBe(1);
  });

  it("is begun again by a process that does not know how that update ended", async () => {
    const harness = own();
    harness.delete();
    expect(await harness.reconcile()).toEqual({ requeueAfterMs: 0 });
    harness.reconciler.drop(KEY);
    harness.destroys.push(destroyed());
    expect(await harness.settle()).toBe("done");
    expect(harness.updates).toBe(2);
  });

  it("waits while the API server is away", async () => {
    const reads = [{ apiVersion: "apps/v1", kind: "Deployment" }];
    const harness = new Harness(kindWith({ providers: [], liveState: { reads, needsReconcile: () => [] } }));
    harness.away = true;
    harness.delete();
    expect(await harness.reconcile()).toBe("retry");
    expect(harness.released).toEqual([]);
  });

  it.each<[string, () => Harness, Partial<UpdateFailure>]>([
    ["is refused for good", own, { errorClass: "terminal", reason: "Invalid" }],
    ["is refused by a plugin", own, { reason: "UpdateFailed" }],
    ["fails for an object that a mark leads to", own, { urn: urn("kubernetes:Secret") }],
    ["fails, of a kind whose marks lead to all", () => new Harness(), {}],
  ])("does not wait when that update %s", async (_, made, rest) => {
    const harness = made();
    harness.refusal = refusal(rest);
    harness.delete();
    harness.destroys.push(destroyed());
    await harness.settle();
    expect(harness.released).toEqual([false]);
  });

  it("does not wait where all resources are to stay", async () => {
    const harness = own();
    harness.refusal = refusal();
    harness.delete();
    harness.setMetadata({ annotations: { [DELETION_POLICY_ANNOTATION]: "Orphan" } });
    harness.destroys.push(destroyed());
    await harness.settle();
    expect(harness.released).toEqual([true]);
  });
});

describe("a deletion during an update", () => {
  /** An object that is deleted while it is updated. @param unrecorded see {@link UpResult.unrecorded} */
  async function deletedInUpdate(unrecorded: boolean): Promise<Harness> {
    const harness = await reconciled();
    harness.changeSpec();
    harness.program.mockImplementationOnce(() => {
      harness.delete();
      harness.setMetadata({ generation: 3, resourceVersion: "1000" });
      harness.reconciler.noteChange(harness.object);
    });
    harness.interrupted = true;
    harness.unrecorded = unrecorded;
    expect(await harness.reconcile()).toBe("retry");
    expect(harness.isStopped).toBe(true);
    harness.interrupted = false;
    harness.destroys.push(destroyed());
    return harness;
  }

  it("is followed by the destroy, where the state has all that was made", async () => {
    const harness = await deletedInUpdate(false);
    expect(await harness.reconcile()).toBe("done");
    expect(harness.updates).toBe(2);
    expect(harness.released).toEqual([false]);
  });

  it("is followed by one more update, where something may have been made that it does not have", async () => {
    const harness = await deletedInUpdate(true);
    expect(await harness.settle()).toBe("done");
    expect(harness.updates).toBe(3);
    expect(harness.released).toEqual([false]);
  });

  it("interrupts no other object's", async () => {
    const harness = new Harness();
    harness.program.mockImplementationOnce(() => {
      const { metadata } = harness.object;
      const former = { ...metadata, uid: "former", deletionTimestamp: "2026-01-01T00:00:00Z" };
      harness.reconciler.noteChange({ ...harness.object, metadata: former });
    });
    expect(await harness.reconcile()).toBe("done");
    expect(harness.isStopped).toBe(false);
  });
});
