import { describe, expect, it } from "vitest";
import { OBJECT_STUB } from "../../providers/kubernetes/object";
import type { FieldDrift } from "../../providers/provider";
import type { StackResource } from "../../src/automation/event-log";
import { alterationsIn, revertsIn } from "../../src/controller/repairs";

const deployment = (corrected: FieldDrift[], more: object = {}): StackResource => {
  const resource = {
    urn: "urn:a",
    type: "kubernetes:Deployment",
    name: "deployment/cache",
    operation: "update",
  } as const;
  const manifest = { apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "cache", namespace: "default" } };
  return { ...resource, outputs: { __provider: OBJECT_STUB, manifest, fields: "", ...more }, corrected };
};
const row = (corrected: FieldDrift[], values: object = {}): StackResource => {
  return { urn: "urn:r", type: "postgres:Row", name: "row/a", operation: "update", outputs: { values }, corrected };
};
const replicas: FieldDrift = { field: "spec.replicas", wanted: 1, live: 3, by: "kubectl-edit" };

describe("what a repair put right", () => {
  const textsOf = (resources: StackResource[], missing: string[] = [], compared?: string) =>
    revertsIn(resources, missing, compared).flatMap(({ repaired }) => repaired ?? []);

  it("says which field of what, from what to what, and who had changed it", () => {
    expect(textsOf([deployment([replicas])])).toEqual(["Deployment default/cache: spec.replicas 3 → 1 (kubectl-edit)"]);
  });

  it("says what had been removed, deleted or taken away", () => {
    expect(textsOf([deployment([{ field: "metadata.labels.team", wanted: "a" }])])).toEqual([
      'Deployment default/cache: metadata.labels.team nothing → "a"',
    ]);
    expect(textsOf([], ["apps/v1/Deployment/default/cache"])).toEqual(["Deployment default/cache was deleted"]);
    const drift = [{ field: "country", wanted: "canada", live: "CANADA" }];
    expect(textsOf([row(drift)], [], "what a comparison says")).toEqual(["what a comparison says"]);
  });

  it("shows no values of what has a secret", () => {
    const corrected = [{ field: "country", wanted: "s3cret", live: "other" }];
    expect(textsOf([row(corrected, { country: "[secret]" })])).toEqual(["row/a: country … → …"]);
  });

  it("shortens values, and lets none take effect on a terminal", () => {
    const [text = ""] = textsOf([row([{ field: "name", wanted: "x".repeat(500), live: "\u001b[31m" }])]);
    expect(text).toContain('"\\u001b[31m" → "xxx');
    expect(text.length).toBeLessThan(150);
  });
});

describe("a conflict", () => {
  it("names field, both values and manager", () => {
    const [revert] = revertsIn([deployment([replicas])], [], undefined);
    expect(revert?.conflict).toBe("Deployment default/cache: spec.replicas is 3 in place of 1: set by kubectl-edit");
  });

  it("says that admission changed a field that no other manager has", () => {
    const altered = deployment([], { drift: [{ ...replicas, by: "admission" }] });
    expect(alterationsIn([altered]).map(({ conflict }) => conflict)).toEqual([
      "Deployment default/cache: spec.replicas is 3 in place of 1: admission changed it",
    ]);
    expect(alterationsIn([deployment([])])).toEqual([]);
  });

  it("is over the same field with the same client, whatever the values", () => {
    const keyOf = (drift: FieldDrift) => revertsIn([deployment([drift])], [], undefined)[0]?.key;
    expect(keyOf({ ...replicas, live: 7 })).toBe(keyOf(replicas));
    expect(keyOf({ ...replicas, by: "someone" })).not.toBe(keyOf(replicas));
    expect(keyOf({ ...replicas, field: "spec.paused" })).not.toBe(keyOf(replicas));
  });
});
