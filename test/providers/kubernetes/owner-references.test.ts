import { describe, expect, it } from "vitest";
import type { LiveObject, Manifest } from "../../../providers/kubernetes/client";
import { provider } from "../../../providers/kubernetes/object";
import { lastingOwner } from "../../../providers/kubernetes/owner-references";
import { acme } from "../../objects";
import { lookupOf } from "./lookup-of";

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

it("the namespace of Pods is read once for all calls, each of which has a client of its own", async () => {
  const reads: string[] = [];
  const shared = {};
  const namespace = { apiVersion: "v1", kind: "Namespace", metadata: { name: "default", uid: "uid-of-default" } };
  const clientOfCall = () => ({
    shared,
    async get(_type: unknown, name: string) {
      reads.push(name);
      return lookupOf(namespace as LiveObject);
    },
  });

  for (let call = 0; call < 3; call++) {
    const found = await lastingOwner(clientOfCall(), object("Pod", [own]), undefined);
    expect(found).toEqual({ apiVersion: "v1", kind: "Namespace", name: "default", uid: "uid-of-default" });
  }

  expect(reads).toEqual(["default"]);
});
