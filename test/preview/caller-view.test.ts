import { describe, expect, it } from "vitest";
import type { LiveObject } from "../../providers/kubernetes/client";
import { callerView, type KnownObject } from "../../src/preview/caller-view";
import type { ClusterView } from "../../src/preview/cluster-view";
import { objectId } from "../../stacks/contract/object";
import { capsuleTenant } from "../../stacks/kinds/capsule-tenant/kind";
import { podSet } from "../../stacks/kinds/podset/kind";
import { liveObject } from "../objects";
import { stub } from "../stub";

const named = (kind: string, name: string) => ({ apiVersion: "v1", kind, metadata: { name, uid: name } }) as LiveObject;
const live = named("PodSet", "web");
const [recorded, owned] = [named("Pod", "by-the-state"), named("Pod", "alive")];
const look = async () => ({ outcome: "unknown", error: new Error("forbidden") }) as const;

/** What a caller sees who may read nothing, unless it is said here. */
function viewOf(known: Partial<KnownObject>, cluster: object = {}) {
  const identity = () => Promise.reject(new Error("forbidden"));
  const nothing = { unreachable: undefined, look, identity, watched: async () => undefined, ...cluster };
  const object = { kind: podSet, key: "default/web", live, owned: undefined, recorded: [recorded] };
  return callerView(stub<ClusterView>(nothing), { ...object, ...known });
}

describe("what a caller may not read", () => {
  it("is what the state knows, and said in the same order each time", async () => {
    const view = viewOf({});
    expect(await Promise.all([view.watched(), view.owned(), view.cluster()])).toEqual([[], [recorded], undefined]);
    expect(view.unknown()).toEqual([
      "which cluster it is could not be looked up: forbidden",
      "its resources could not be listed",
      "what it depends on could not be listed",
    ]);
  });

  it("is not told of an object that is not there, nor again where no cluster answers", async () => {
    const view = viewOf({ live: undefined }, { unreachable: "no cluster", identity: async () => undefined });
    expect(await Promise.all([view.watched(), view.owned()])).toEqual([[], [recorded]]);
    expect(view.unknown()).toEqual([]);
  });

  it("is found in a list of the object's resources, not in its state", async () => {
    const view = viewOf({ owned: [owned] });
    expect(await view.look(owned)).toEqual({ outcome: "found", object: owned });
    expect(await view.look(recorded)).toMatchObject({ outcome: "unknown" });
  });
});

describe("what is deleted with an object though others made it", () => {
  it("is seen by a preview as by the operator", async () => {
    const group = capsuleTenant.capabilities.watches?.find(({ deletedWithObject }) => deletedWithObject);
    const { apiVersion = "", kind = "" } = group ?? {};
    const [label = "", value = ""] = group?.selectorOf("oil").split("=") ?? [];
    const theirs = liveObject({ apiVersion, kind, metadata: { name: "theirs", labels: { [label]: value } } });
    const watched = async () => [theirs, named("Namespace", "oil-prod")];
    const view = viewOf({ kind: capsuleTenant, key: "oil" }, { watched });
    expect((await view.deletedWith()).map(objectId)).toEqual([objectId(theirs)]);
  });

  it("costs kinds without it no request", async () => {
    const watched = () => Promise.reject(new Error("not to be asked for"));
    expect(await viewOf({}, { watched }).deletedWith()).toEqual([]);
  });
});
