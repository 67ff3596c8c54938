import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import type { Manifest } from "../../../providers/kubernetes/client";
import { kindName } from "../../../stacks/contract/kind";
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
  it("have the namespace default and the schema's defaults where they say nothing", async () => {
    const [declared] = await declaredObjects([inFile(podSet)], kinds, "prod");

    expect(declared?.key).toBe("default/pods");
    expect(declared?.object.spec).toEqual({ replicas: 1 });
  });

  it("are not in a namespace when their kind is not", async () => {
    const [declared] = await declaredObjects([inFile(acme)], kinds, "prod");

    expect(declared?.key).toBe("acme");
    expect(declared?.object.metadata.namespace).toBeUndefined();
  });

  it("are the same owner in the same stack and another one in another, by a valid label", async () => {
    const uidIn = async (stack: string) => (await declaredObjects([inFile(acme)], kinds, stack))[0]?.owner.uid;

    expect(await uidIn("prod")).toBe(await uidIn("prod"));
    expect(await uidIn("prod")).not.toBe(await uidIn("test"));
    expect(await uidIn("prod")).toMatch(/^[a-z0-9-]{1,63}$/);
  });

  it.each(kinds.map((kind) => [kindName(kind), kind] as const))("may be the sample of %s", async (_, kind) => {
    const sample = parse(readFileSync(join(kind.directory, "sample.yaml"), "utf8")) as Manifest;
    expect(await declaredObjects([inFile(sample)], kinds, "prod")).toHaveLength(1);
  });

  it("are refused together, each with its file and its mistake", async () => {
    const wrong = { ...podSet, spec: { replicas: -1 } };
    const long = { ...podSet, metadata: { name: "p".repeat(64) } };
    const misspelt = { ...podSet, metadata: { name: "m" }, spec: { replica: 2 } };
    const foreign = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "c" } };

    const files = [
      inFile(acme),
      inFile(acme, "b.yaml"),
      inFile(wrong),
      inFile(long, "l.yaml"),
      inFile(misspelt, "m.yaml"),
      inFile(foreign, "c.yaml"),
    ];
    const message = await declaredObjects(files, kinds, "prod").then(String, (error: Error) => error.message);

    expect(message).toContain("b.yaml: Tenant acme: tenants.multitenancy.codereliant.io/acme is declared twice");
    expect(message).toContain("cr.yaml: PodSet pods: spec.replicas: -1 must be >= 0");
    expect(message).toMatch(/^l\.yaml: PodSet p+: the name is a label of the Pods: at most 63 characters$/m);
    expect(message).toContain("m.yaml: PodSet m: spec.replica: there is no such field");
    expect(message).toContain("c.yaml: ConfigMap c: v1 is not one of Kindstack's: Tenant in multitenancy");
  });

  it("have a stack of their own, which is the operator's", async () => {
    const [declared] = await declaredObjects([inFile(acme)], kinds, "prod");

    expect(declared && isOwnStack(declared, "prod")).toBe(false);
    expect(declared && isOwnStack(declared, stackName(tenant, "acme"))).toBe(true);
  });
});
