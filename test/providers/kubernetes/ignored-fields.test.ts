import { describe, expect, it } from "vitest";
import { ignoredPaths, parseIgnoredFields, withoutIgnored } from "../../../providers/kubernetes/ignored-fields";
import type { ManagedFieldsEntry, Manifest } from "../../../providers/kubernetes/types";
import { applied, liveObject } from "../../objects";

/** What a Deployment of two containers has, the first one of this image. */
const spec = (replicas: number, image: string) => ({
  replicas,
  template: {
    spec: {
      containers: [
        { name: "a", image },
        { name: "b", image: "b:1" },
      ],
    },
  },
});
const manifest: Manifest = {
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "web", labels: { "example.com/team": "a", app: "web" } },
  spec: spec(1, "a:1"),
};
const live = (...managedFields: ManagedFieldsEntry[]) =>
  liveObject({ ...manifest, metadata: { ...manifest.metadata, managedFields }, spec: spec(3, "a:2") });
const REPLICAS = { "f:spec": { "f:replicas": {} } };

describe("fields that are left to others", () => {
  it.each<[string, string[]]>([
    ["", []],
    ["Deployment/web:spec.replicas", ["Deployment/web:spec.replicas"]],
    [" Deployment:spec.replicas, Service/a.b:spec.type\n", ["Deployment:spec.replicas", "Service/a.b:spec.type"]],
    ['Pod:spec.a[name="a"].b Pod:metadata.labels["e/t"]', ['Pod:spec.a[name="a"].b', 'Pod:metadata.labels["e/t"]']],
    ['Service:spec.p[port=80,protocol="TCP"].n, Pod:spec', ['Service:spec.p[port=80,protocol="TCP"].n', "Pod:spec"]],
  ])("%j names %j", (text, fields) => expect(parseIgnoredFields(text)).toEqual({ fields }));

  it.each([
    "spec.replicas",
    "Deployment/web",
    "deployment/web:spec.replicas",
    "Deployment/web:",
    "Deployment:.spec",
    "Deployment:spec..a",
    "Deployment:spec.template.spec.containers[0].image",
  ])("%j names none, and says so", (text) => expect(parseIgnoredFields(text)).toEqual({ fields: [], problem: text }));

  it("are those of the object that they name, or of all of its kind", () => {
    const ours = ["Deployment:spec.paused", "Deployment/web:spec.replicas"];
    const fields = [...ours, "Deployment/b:spec.x", "Service/web:spec.y"];
    expect(ignoredPaths(fields, manifest)).toEqual(["spec.paused", "spec.replicas"]);
    expect(ignoredPaths(undefined, manifest)).toEqual([]);
  });
});

describe("what is applied of an object whose fields are left to others", () => {
  it("is all of it when there is none yet", () => {
    expect(withoutIgnored(manifest, undefined, ["spec.replicas"])).toBe(manifest);
  });

  it("has the live value as long as no other manager has the field", () => {
    const ours = live(applied("kindstack", REPLICAS));
    expect(withoutIgnored(manifest, ours, ["spec.replicas"]).spec).toMatchObject({ replicas: 3 });
  });

  it("does not have the field when another manager does", () => {
    const scaling = { operation: "Update", subresource: "scale", fieldsV1: REPLICAS } as const;
    const scaled = live(applied("kindstack", {}), { manager: "autoscaler", ...scaling });
    const { spec } = withoutIgnored(manifest, scaled, ["spec.replicas"]);
    expect(spec).not.toHaveProperty("replicas");
    expect(spec).toHaveProperty("template");
  });

  it("reaches items of lists and names with dots", () => {
    const path = 'spec.template.spec.containers[name="a"].image';
    const result = withoutIgnored(manifest, live(), [path, 'metadata.labels["example.com/team"]', "spec.unknown"]);
    expect(result.spec).toMatchObject({ template: { spec: { containers: [{ image: "a:2" }, { image: "b:1" }] } } });
    expect(result.metadata.labels).toEqual({ "example.com/team": "a", app: "web" });
    expect(manifest.spec).toMatchObject({ template: { spec: { containers: [{ image: "a:1" }, {}] } } });
  });
});
