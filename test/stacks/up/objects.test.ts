import { describe, expect, it } from "vitest";
import type { Manifest } from "../../../providers/kubernetes/client";
import type { SourcedManifest } from "../../../stacks/contract/manifests";
import { stackName } from "../../../stacks/contract/object";
import { kinds } from "../../../stacks/index";
import { tenant } from "../../../stacks/tenant/kind";
import { declaredObjects, isOwnStack } from "../../../stacks/up/objects";

function inFile(manifest: Partial<Manifest>, file = "cr.yaml"): SourcedManifest {
  return { manifest: manifest as SourcedManifest["manifest"], file };
}
const podSet = { apiVersion: "batch.tutorial.kubebuilder.io/v1", kind: "PodSet", metadata: { name: "pods" }, spec: {} };
const acme = {
  apiVersion: "multitenancy.codereliant.io/v1",
  kind: "Tenant",
  metadata: { name: "acme" },
  spec: { adminEmail: "a@example.com", namespaces: ["acme"] },
};

describe("objects declared in files", () => {
  it("have the namespace default and the schema's defaults where they say nothing", () => {
    const [declared] = declaredObjects([inFile(podSet)], kinds, "prod");

    expect(declared?.key).toBe("default/pods");
    expect(declared?.object.spec).toEqual({ replicas: 1 });
  });

  it("are not in a namespace when their kind is not", () => {
    const [declared] = declaredObjects([inFile(acme)], kinds, "prod");

    expect(declared?.key).toBe("acme");
    expect(declared?.object.metadata.namespace).toBeUndefined();
  });

  it("are the same owner in the same stack and another one in another, by a valid label", () => {
    const uidIn = (stack: string) => declaredObjects([inFile(acme)], kinds, stack)[0]?.owner.uid;

    expect(uidIn("prod")).toBe(uidIn("prod"));
    expect(uidIn("prod")).not.toBe(uidIn("test"));
    expect(uidIn("prod")).toMatch(/^[a-z0-9-]{1,63}$/);
  });

  it("are refused together, each with its file and its mistake", () => {
    const wrong = { ...podSet, spec: { replicas: -1 } };
    const foreign = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "c" } };

    const declare = () =>
      declaredObjects([inFile(acme), inFile(acme, "b.yaml"), inFile(wrong), inFile(foreign, "c.yaml")], kinds, "prod");

    expect(declare).toThrow("b.yaml: Tenant acme: tenants.multitenancy.codereliant.io/acme is declared twice");
    expect(declare).toThrow("cr.yaml: PodSet pods: spec.replicas: -1 must be >= 0");
    expect(declare).toThrow("c.yaml: ConfigMap c: v1 is not one of Kindstack's: Tenant in multitenancy");
  });

  it("have a stack of their own, which is the watcher's", () => {
    const [declared] = declaredObjects([inFile(acme)], kinds, "prod");

    expect(declared && isOwnStack(declared, "prod")).toBe(false);
    expect(declared && isOwnStack(declared, stackName(tenant, "acme"))).toBe(true);
  });
});
