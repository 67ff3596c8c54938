import { beforeAll, describe, expect, it, vi } from "vitest";
import { KubernetesClient, type Manifest } from "../../../providers/kubernetes/client";
import { PAUSED_ANNOTATION, refusingManaged } from "../../../providers/kubernetes/managed-owner";
import { stackOwnerUid } from "../../../providers/kubernetes/ownership";
import type { DynamicProvider } from "../../../providers/provider";
import { eventually } from "../../../src/testing/eventually";
import { stub } from "../../stub";
import { CRD, definition, TestCluster } from "./test-cluster";

/* What `pulumi destroy` deletes of an object that is in the cluster: it has no context of the operator's. */

const GROUP = "managed.kindstack.dev";
const widgets = definition(GROUP, "Widget");
const cluster = TestCluster.use();
/** As the operator names it. */
let stack: string;
let widget: Manifest;
let uid: string;

beforeAll(async () => {
  await cluster.client.apply(widgets);
  stack = `widget.${cluster.namespace}.web-0123456789abcdef012`;
  widget = cluster.manifest({ apiVersion: `${GROUP}/v1`, kind: "Widget" }, "web");
  const made = await eventually(() => cluster.client.create(widget));
  await cluster.client.replaceStatus(made, { stack: { name: stack } });
  uid = made.metadata.uid;
  return () => cluster.client.delete(CRD, widgets.metadata.name ?? "");
});

/** @returns whether the provider was asked to delete */
async function destroy(owner: string, name = "web"): Promise<boolean> {
  const deleted = vi.fn();
  const provider = refusingManaged(stub<DynamicProvider<object, { owner: Owner }>>({ delete: deleted }));
  await provider.delete("id", { owner: { uid: owner, description: `Widget.${GROUP}/${cluster.namespace}/${name}` } });
  return deleted.mock.calls.length === 1;
}
interface Owner {
  uid: string;
  description: string;
}
const ofStack = (name: string) => stackOwnerUid(name, "0".repeat(64));

describe("pulumi destroy of what an object has", () => {
  it("is refused in the operator's stack, also where pulumi up has updated that last", async () => {
    for (const owner of [uid, ofStack(stack)]) await expect(destroy(owner)).rejects.toThrow("pause it first");
  });

  it("is refused where the cluster cannot tell, but for a stack of one's own", async () => {
    vi.spyOn(KubernetesClient.prototype, "get").mockResolvedValue({ outcome: "unknown", error: new Error("away") });
    try {
      for (const owner of [uid, ofStack(stack)]) await expect(destroy(owner)).rejects.toThrow("away");
      expect(await destroy(ofStack("team-two"))).toBe(true);
    } finally {
      vi.restoreAllMocks();
    }
  });

  it("is not refused in a stack of one's own, nor where the object is absent or paused", async () => {
    expect(await destroy(ofStack("team-two"))).toBe(true);
    expect(await destroy(ofStack(stack), "absent")).toBe(true);
    const annotations = { [PAUSED_ANNOTATION]: "true" };
    await cluster.client.mergePatch(widget, "web", cluster.namespace, { metadata: { annotations } });
    for (const owner of [uid, ofStack(stack)]) expect(await destroy(owner)).toBe(true);
  });
});
