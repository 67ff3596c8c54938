import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it, vi } from "vitest";
import type { KubernetesClient, LiveObject } from "../../providers/kubernetes/client";
import { OWNER_UID_LABEL } from "../../providers/kubernetes/ownership";
import type { KindContext, Reconcile } from "../../src/controller/context";
import type { KindCache } from "../../src/controller/kind-cache";
import type { ObjectItem } from "../../src/controller/object-item";
import type { ObjectState } from "../../src/controller/object-state";
import { viewOf } from "../../src/controller/operator-view";
import { Expectations } from "../../src/controller/own-writes";
import { readInputs } from "../../src/plan/plan";
import type { AnyKind } from "../../stacks/contract/kind";
import { objectId } from "../../stacks/contract/object";
import { capsuleTenant } from "../../stacks/kinds/capsule-tenant/kind";
import { memcached } from "../../stacks/kinds/memcached/kind";
import { podSet } from "../../stacks/kinds/podset/kind";
import { liveObject, marksOf } from "../objects";
import { lookupOf } from "../providers/kubernetes/lookup-of";
import { stub } from "../stub";

const object = (name: string, namespace?: string) =>
  ({ metadata: { name, uid: `uid-${name}`, ...(namespace && { namespace }) } }) as LiveObject;

/** A Pod that was made for this owner. */
const pod = (name: string, uid: string, owner = "default/web", namespace = "default") => {
  const description = `PodSet.batch.tutorial.kubebuilder.io/${owner}`;
  return liveObject({ metadata: { name, namespace, ...marksOf({ uid, description }, { created: false }) } });
};

/** Reads the inputs of an object whose caches show this of what it owns. */
function read(client: KubernetesClient, kind: AnyKind, key: string, object: LiveObject, cached: LiveObject[] = []) {
  const cache = stub<KindCache>({ owned: () => cached, watched: () => [] });
  const context = stub<KindContext>({ client, kind, cache });
  const state = stub<ObjectState>({ expectations: new Expectations() });
  const reconcile = stub<Reconcile>({ context, item: stub<ObjectItem>({ key }), object, state });
  return readInputs(viewOf(reconcile), kind, { spec: {}, ...object, metadata: { generation: 1, ...object.metadata } });
}

type Rest<T extends unknown[]> = T extends [unknown, ...infer Others] ? Others : never;

/** An API server that has these Pods, and notes what it is asked for. */
function server(listed: LiveObject[], single: LiveObject[] = []) {
  const list = vi.fn(async (..._asked: [unknown, unknown]) => ({ items: listed, resourceVersion: "1" }));
  const client = stub<KubernetesClient>({
    list,
    find: async (object) => lookupOf(single.find(({ metadata }) => metadata.name === object.metadata.name)),
  });
  return { list, read: (...of: Rest<Parameters<typeof read>>) => read(client, ...of) };
}

describe("what a program is shown of the cluster", () => {
  it("is asked for by the object's own labels, in its namespace", async () => {
    const owned = [pod("web-1", "uid-web")];
    const { list, read } = server(owned);
    const seen = await read(podSet, "default/web", object("web", "default"));
    expect(seen).toEqual({ owned, watched: [], referenced: new Map() });
    const selector = { labelSelector: `${OWNER_UID_LABEL}=uid-web`, namespace: "default" };
    expect(list).toHaveBeenCalledExactlyOnceWith({ apiVersion: "v1", kind: "Pod" }, selector);
  });

  it("is, for what a kind observes, only what is for the object", async () => {
    const { list, read } = server([]);
    await read(capsuleTenant, "oil", object("oil"));
    const selectors = new Set(list.mock.calls.map(([, options]) => JSON.stringify(options)));
    const expected = ["capsule.clastix.io/tenant=oil", `${OWNER_UID_LABEL}=uid-oil`];
    expect([...selectors].sort()).toEqual(expected.map((labelSelector) => JSON.stringify({ labelSelector })));
  });

  it("has what was made for a predecessor, as far as that is still there and has no other owner", async () => {
    const cached = ["kept", "gone", "taken"].map((name) => pod(name, "uid-before"));
    const taken = pod("taken", "uid-other", "default/other");
    const { read } = server([], [pod("kept", "uid-before"), taken]);
    const { owned } = await read(podSet, "default/web", object("web", "default"), cached);
    expect(owned).toEqual([pod("kept", "uid-before")]);
  });

  const made = (...pods: LiveObject[]) => ({
    ...object("web", "default"),
    status: { stack: { resources: pods.map((one) => ({ id: objectId(one), fields: "f" })) } },
  });

  it("is not an outdated list, which lacks what it made: that would be deleted", async () => {
    const pods = [pod("web-1", "uid-web"), pod("web-2", "uid-web")];
    const { read } = server(pods.slice(1), pods);
    const reading = read(podSet, "default/web", made(...pods));
    await expect(reading).rejects.toMatchObject({ reason: "StaleList", errorClass: "retryable" });
  });

  it("is a list without what is gone, or is another owner's by now", async () => {
    const pods = [pod("gone", "uid-web"), pod("taken", "uid-web")];
    const { read } = server([], [pod("taken", "uid-other")]);
    expect(await read(podSet, "default/web", made(...pods))).toMatchObject({ owned: [] });
  });

  it("has what it made in another namespace, as far as that is its own still", async () => {
    const elsewhere = (name: string, uid: string) => pod(name, uid, "default/web", "shared");
    const pods = [elsewhere("web-1", "uid-web"), elsewhere("web-2", "uid-web")];
    const { read } = server([], [elsewhere("web-1", "uid-web"), elsewhere("web-2", "uid-other")]);
    const { owned } = await read(podSet, "default/web", made(...pods));
    expect(owned).toEqual([elsewhere("web-1", "uid-web")]);
  });

  it("is an error, and no unhandled rejection, when what a predecessor had cannot be read while others are listed", async () => {
    const client = stub<KubernetesClient>({
      list: () => delay(10, { items: [], resourceVersion: "1" }),
      find: async () => ({ outcome: "unknown", error: new Error("unavailable") }),
    });
    const unhandled = vi.fn();
    process.on("unhandledRejection", unhandled);
    const reading = read(client, podSet, "default/web", object("web", "default"), [pod("a", "uid-before")]);
    await expect(reading).rejects.toThrow("unavailable");
    process.off("unhandledRejection", unhandled);
    expect(unhandled).not.toHaveBeenCalled();
  });

  it("costs no request for a kind that goes by nothing in the cluster", async () => {
    const { list, read } = server([]);
    const seen = await read(memcached, "default/cache", object("cache", "default"));
    expect(seen).toEqual({ owned: [], watched: [], referenced: new Map() });
    expect(list).not.toHaveBeenCalled();
  });
});
