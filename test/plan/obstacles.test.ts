import { expect, it } from "vitest";
import type { LiveObject, Manifest } from "../../providers/kubernetes/client";
import type { ObjectInputs } from "../../providers/kubernetes/object-inputs";
import type { PlannedResource } from "../../src/plan/effects";
import { refusalsOf } from "../../src/plan/obstacles";
import { acme, globex, marksOf } from "../objects";

const manifest: Manifest = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "web", namespace: "default" } };

/** An update of an object, as a plan has it. */
function updateOf(holder: typeof acme): PlannedResource {
  const inputs: ObjectInputs = { manifest, owner: acme };
  const metadata = { ...manifest.metadata, ...marksOf(holder, { created: true }), uid: "u", resourceVersion: "1" };
  return {
    change: { urn: "urn", type: "t", name: "web", operation: "create", inputs: { ...inputs } },
    shown: { name: "web", type: "ConfigMap", operation: "update", fields: [] },
    inputs,
    live: { ...manifest, metadata } as LiveObject,
  };
}

it("an object of another owner is refused, with who has it", async () => {
  const refusals = await refusalsOf([updateOf(globex)]);

  expect([...refusals.keys()]).toEqual(["urn"]);
  expect(refusals.get("urn")).toMatch(/^Conflict: .*Tenant\.multitenancy\.codereliant\.io\/globex/);
});

it("the owner's object is not", async () => {
  expect(await refusalsOf([updateOf(acme)])).toEqual(new Map());
});
