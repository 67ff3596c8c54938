import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import type { Manifest } from "../../../providers/kubernetes/client";
import { kindName } from "../../../stacks/contract/kind";
import { stackName } from "../../../stacks/contract/object";
import type { SourcedDocument } from "../../../stacks/contract/parse-manifests";
import { kinds } from "../../../stacks/kinds/index";
import { tenant } from "../../../stacks/kinds/tenant/kind";
import { declaredObjects, isOwnStack } from "../../../stacks/up/objects";

function inFile(manifest: Partial<Manifest>, file = "cr.yaml"): SourcedDocument {
  return { manifest: manifest as SourcedDocument["manifest"], file };
}
const podSet = { apiVersion: "batch.tutorial.kubebuilder.io/v1", kind: "PodSet", metadata: { name: "pods" }, spec: {} };
const acme = {
  apiVersion: "multitenancy.codereliant.io/v1",
  kind: "Tenant",
  metadata: { name: "acme" },
  spec: { adminEmail: "a@example.com", namespaces: ["acme"] },
};

describe("objects declared in files", () => {
  it("are the same owner in the same stack and another one in another, by a valid label", async () => {
    const uidIn = async (stack: string) =>
      (await declaredObjects([inFile(acme)], kinds, stack, "default"))[0]?.owner.uid;

    expect(await uidIn("prod")).toBe(await uidIn("prod"));
    expect(await uidIn("prod")).not.toBe(await uidIn("test"));
    expect(await uidIn("prod")).toMatch(/^[a-z0-9-]{1,63}$/);
  });

  it.each(kinds.map((kind) => [kindName(kind), kind] as const))("may be the sample of %s", async (_, kind) => {
    const sample = parse(readFileSync(join(kind.directory, "sample.yaml"), "utf8")) as Manifest;
    expect(await declaredObjects([inFile(sample)], kinds, "prod", "default")).toHaveLength(1);
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
    const message = await declaredObjects(files, kinds, "prod", "default").then(
      String,
      (error: Error) => error.message,
    );

    expect(message).toContain("b.yaml: tenants.multitenancy.codereliant.io/acme is in cr.yaml already");
    expect(message).toContain("cr.yaml: PodSet default/pods: spec.replicas: -1 must be >= 0");
    expect(message).toMatch(/^l\.yaml: PodSet default\/p+: the name is a label of the Pods: at most 63 characters$/m);
    expect(message).toContain("m.yaml: PodSet default/m: spec.replica: there is no such field");
    expect(message).not.toContain("c.yaml"); // it is another's
  });

  it("pass over what is not Kindstack's, unless there is nothing else", async () => {
    const foreign = [inFile({ apiVersion: "batch/v1", kind: "Job", metadata: { generateName: "j-" } }, "job.yaml")];
    expect(await declaredObjects([...foreign, inFile(acme)], kinds, "prod", "default")).toHaveLength(1);
    await expect(declaredObjects(foreign, kinds, "prod", "default")).rejects.toThrow(
      "job.yaml: Job not of Kindstack's kinds: Tenant",
    );
  });

  it.each([
    [{}, ": metadata: must be given"],
    [{ metadata: { namespace: "a" } }, ": metadata.name: must be given"],
    [{ metadata: { generateName: "a-" } }, ": metadata.name: must be given; what the API server makes of generateName"],
    [{ metadata: { name: 1 } }, ": metadata.name: must be string"],
    [{ metadata: { name: "a", labels: { b: true } } }, " default/a: metadata.labels.b: must be string"],
    [
      { metadata: { name: "a", annotations: { "example.com/x": 5 } } },
      ' default/a: metadata.annotations["example.com/x"]: must be string',
    ],
  ])("are refused with %j for what names them", async (changed, message) => {
    const { metadata: _, ...others } = podSet;
    await expect(
      declaredObjects([inFile({ ...others, ...changed } as never)], kinds, "prod", "default"),
    ).rejects.toThrow(`cr.yaml: PodSet${message}`);
  });

  it("are in the kubeconfig's namespace where they name none, or null", async () => {
    const unplaced = { ...podSet, metadata: { name: "pods", namespace: null, labels: null } };
    const [declared] = await declaredObjects([inFile(unplaced as never)], kinds, "prod", "team");
    expect(declared?.key).toBe("team/pods");
    expect(declared?.object.metadata.labels).toBeUndefined();
  });

  it("have a stack of their own, which is the operator's", async () => {
    const [declared] = await declaredObjects([inFile(acme)], kinds, "prod", "default");

    expect(declared && isOwnStack(declared, "prod")).toBe(false);
    expect(declared && isOwnStack(declared, stackName(tenant, "acme"))).toBe(true);
  });
});
