import { describe, expect, it } from "vitest";
import type { Manifest } from "../../../providers/kubernetes/client";
import { provider } from "../../../providers/kubernetes/object";
import { acme } from "../../objects";

const own = { apiVersion: "example.com/v1", kind: "Note", name: "n", uid: acme.uid, controller: true };
const other = { apiVersion: "v1", kind: "ConfigMap", name: "other", uid: "other" };
const object = (kind: string, ownerReferences?: unknown) =>
  ({ apiVersion: "v1", kind, metadata: { name: "a", namespace: "default", ownerReferences } }) as Manifest;
const checked = async (inputs: object) => (await provider.check({}, { owner: acme, ...inputs } as never)).inputs;

describe("the owner references that a program gives", () => {
  it("lose the one to the stack's object, also in what an object is created with", async () => {
    const initial = { manifest: object("ConfigMap", [other, own]), fieldManager: "keeper" };
    const inputs = await checked({ manifest: object("ConfigMap", [own]), initial });
    expect(inputs).toEqual({
      owner: acme,
      manifest: { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a", namespace: "default" } },
      deletedWith: own,
      initial: { manifest: object("ConfigMap", [other]), fieldManager: "keeper" },
    });
  });

  it.each<[string, string, unknown]>([
    ["a Pod's", "Pod", [own]],
    ["others", "ConfigMap", [other]],
    ["what is not known yet", "ConfigMap", "04da6b54-80e4-46f7-96ec-b56ff0331ba9"],
  ])("are left as they are: %s", async (_, kind, references) => {
    const manifest = object(kind, references);
    expect(await checked({ manifest })).toEqual({ owner: acme, manifest });
  });
});
