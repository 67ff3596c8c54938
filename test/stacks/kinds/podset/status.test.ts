import { describe, expect, it } from "vitest";
import { completedPods, podSetNeedsReconcile, podSetReport } from "../../../../stacks/kinds/podset/pods";
import { pod, podSetObject } from "./objects";

describe("the status of a PodSet", () => {
  it("names the Pods that count, in order, and counts those that are ready", () => {
    const owned = [pod("c"), pod("a", { ready: false }), pod("b", { phase: "Pending", ready: false })];
    expect(podSetReport(podSetObject(3), owned)).toEqual({
      podNames: ["a", "b", "c"],
      replicas: 3,
      readyReplicas: 1,
      selector: "app=web,version=v0.1",
    });
  });

  it("says nothing of Pods that ended or are on their way out, though their condition may still be Ready", () => {
    const owned = [pod("failed", { phase: "Failed" }), pod("leaving", { deleted: true })];
    expect(podSetReport(podSetObject(2), owned)).toMatchObject({ podNames: [], replicas: 0, readyReplicas: 0 });
  });
});

describe("whether a PodSet needs a reconcile", () => {
  it("is empty when as many Pods count as there are to be, ready or not", () => {
    expect(podSetNeedsReconcile(podSetObject(2), [pod("a"), pod("b", { ready: false })])).toEqual([]);
    expect(podSetNeedsReconcile(podSetObject(0), [])).toEqual([]);
  });

  it("is empty while surplus Pods are on their way out", () => {
    expect(podSetNeedsReconcile(podSetObject(1), [pod("a"), pod("b", { deleted: true })])).toEqual([]);
  });

  it.each([
    [1, 2],
    [3, 2],
  ])("names %i Pods where there are to be %i", (count, replicas) => {
    const owned = Array.from({ length: count }, (_, index) => pod(`pod-${index}`));
    expect(podSetNeedsReconcile(podSetObject(replicas), owned)).toEqual([`${count} Pods instead of ${replicas}`]);
  });

  it("names each Pod that ended, and that one is missing for it", () => {
    const owned = [pod("a"), pod("failed", { phase: "Failed" })];
    expect(podSetNeedsReconcile(podSetObject(2), owned)).toEqual(["v1/Pod/default/failed", "1 Pods instead of 2"]);
  });

  it("is by itself what ended, and what is missing for another reason is not", () => {
    const owned = [pod("a"), pod("failed", { phase: "Failed" }), pod("done", { phase: "Succeeded" })];
    expect(completedPods(owned)).toEqual(["v1/Pod/default/failed", "v1/Pod/default/done"]);
    expect(completedPods([pod("a"), pod("leaving", { phase: "Failed", deleted: true })])).toEqual([]);
  });

  it("names a Pod that ended also when none is missing for it: it has to go", () => {
    expect(podSetNeedsReconcile(podSetObject(1), [pod("a"), pod("done", { phase: "Succeeded" })])).toEqual([
      "v1/Pod/default/done",
    ]);
  });
});
