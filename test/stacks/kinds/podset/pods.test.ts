import { describe, expect, it } from "vitest";
import type { LiveObject } from "../../../../providers/kubernetes/client";
import { isCounted, isReady, podsToKeep } from "../../../../stacks/kinds/podset/pods";
import { type PodState, pod } from "./objects";

describe("a Pod", () => {
  it.each<[PodState, boolean]>([
    [{ phase: "Pending", ready: false }, true],
    [{ phase: "Running" }, true],
    [{ phase: "Running", ready: false }, true],
    [{ phase: "Succeeded" }, false],
    [{ phase: "Failed" }, false],
    [{ phase: "Unknown" }, false],
    [{ phase: "Running", deleted: true }, false],
    [{ phase: "Pending", deleted: true }, false],
  ])("that is %o counts: %s", (state, counts) => {
    expect(isCounted(pod("a", state))).toBe(counts);
  });

  it("that has no status yet counts and is not ready", () => {
    const { status: _, ...fresh } = pod("a");
    expect(isCounted(fresh)).toBe(true);
    expect(isReady(fresh)).toBe(false);
  });
});

describe("podsToKeep", () => {
  const keep = (pods: LiveObject[], replicas: number, unrecorded: string[] = []) =>
    podsToKeep(pods, replicas, ({ metadata }) => !unrecorded.includes(metadata.name)).map(
      ({ metadata }) => metadata.name,
    );

  it("keeps none of those that do not count", () => {
    expect(keep([pod("a", { phase: "Failed" }), pod("b", { deleted: true }), pod("c")], 3)).toEqual(["c"]);
  });

  it("lets what is not ready go before what is younger", () => {
    const pods = [pod("old", { age: 9, ready: false }), pod("young", { age: 1 }), pod("younger", { age: 0 })];
    expect(keep(pods, 2)).toEqual(["young", "younger"]);
  });

  it("lets the youngest of those that are not ready go first", () => {
    const pods = [pod("young", { age: 1, ready: false }), pod("old", { age: 9, ready: false }), pod("ready")];
    expect(keep(pods, 2)).toEqual(["ready", "old"]);
  });

  it("decides between Pods of the same second by name, so that it always decides the same", () => {
    expect(keep([pod("b"), pod("c"), pod("a")], 2)).toEqual(["a", "b"]);
    expect(keep([pod("c"), pod("a"), pod("b")], 2)).toEqual(["a", "b"]);
  });

  it("keeps what no stack has recorded before all others, ready or not", () => {
    const pods = [pod("old", { age: 9 }), pod("older", { age: 10 }), pod("unrecorded", { ready: false })];
    expect(keep(pods, 2, ["unrecorded"])).toEqual(["unrecorded", "older"]);
  });

  it("keeps what no stack has recorded even when it is too many: only what is recorded can be deleted", () => {
    expect(keep([pod("a"), pod("b"), pod("c")], 1, ["b", "c"]).sort()).toEqual(["b", "c"]);
  });
});
