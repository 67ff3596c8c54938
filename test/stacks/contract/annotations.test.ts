import { describe, expect, it } from "vitest";
import { leavesField, obeyedAnnotations } from "../../../stacks/contract/annotations";

const obeyed = (annotations: Record<string, string>, metadata: object = {}) =>
  obeyedAnnotations({ metadata: { name: "acme", annotations, ...metadata } });

describe("the annotations of an object", () => {
  it.each(["true", "True", "TRUE", " true", "true\n"])("pause it with %j", (value) => {
    expect(obeyed({ "kindstack.dev/paused": value })).toMatchObject({ paused: true, problem: undefined });
  });

  it.each(["Orphan", "orphan", "ORPHAN", " Orphan "])("release its resources with %j", (value) => {
    expect(obeyed({ "kindstack.dev/deletion-policy": value })).toMatchObject({ releases: true, paused: false });
  });

  it.each([
    ["kindstack.dev/paused", "yes", 'annotation kindstack.dev/paused: "yes" must be true or false'],
    ["kindstack.dev/paused", "", 'annotation kindstack.dev/paused: "" must be true or false'],
    [
      "kindstack.dev/deletion-policy",
      "Retain",
      'annotation kindstack.dev/deletion-policy: "Retain" must be Orphan or Delete',
    ],
    ["kindstack.dev/pause", "true", /^unknown annotation kindstack\.dev\/pause; known are kindstack\.dev\/paused, /],
    ["kindstack.dev/Paused", "true", /^unknown annotation kindstack\.dev\/Paused;/],
    ["kindstack.dev/deletionPolicy", "Orphan", /^unknown annotation/],
    ["kindstack.dev/toString", "", /^unknown annotation/],
  ])("that cannot be understood pause it and are named: %s=%s", (key, value, problem) => {
    expect(obeyed({ [key]: value })).toMatchObject({ paused: true, problem: expect.stringMatching(problem) });
  });

  it("leave fields to others, or say what is no field and what is", () => {
    const key = "kindstack.dev/ignore-fields";
    const fields = ["Deployment/web:spec.replicas", "Service:spec.type"];
    expect(obeyed({ [key]: fields.join(", ") })).toMatchObject({ ignoreFields: fields, paused: false });
    expect(obeyed({ [key]: "spec.replicas" })).toMatchObject({
      paused: true,
      problem: expect.stringContaining(
        '"spec.replicas" must be <Kind>/<name>:<field>, such as Deployment/web:spec.replicas',
      ),
    });
    expect(obeyed({}).ignoreFields).toEqual([]);
  });

  it("leave a field of one object, with what is below it", () => {
    const object = { metadata: { annotations: { "kindstack.dev/ignore-fields": "Deployment/web:spec" } } };
    const made = (kind: string, name: string) => ({ kind, metadata: { name } });
    expect(leavesField(object, made("Deployment", "web"), "spec.replicas")).toBe(true);
    expect(leavesField(object, made("Deployment", "other"), "spec.replicas")).toBe(false);
    expect(leavesField(object, made("Deployment", "web"), "specification")).toBe(false);
  });

  it("may be others', or Kindstack's own", () => {
    const annotations = {
      "example.com/paused": "yes",
      "kindstack.dev/owner": "Tenant.x/y",
      "kindstack.dev/reconcile": "",
    };
    expect(obeyed(annotations)).toMatchObject({ paused: false, problem: undefined, requested: "" });
  });
});

describe("a deletion with --cascade=orphan", () => {
  const deletionTimestamp = "2026-01-01T00:00:00Z";

  it("releases what the object made, by the API server's finalizer and by the record of it", () => {
    expect(obeyed({}, { deletionTimestamp, finalizers: ["orphan"] }).releases).toBe(true);
    expect(obeyed({ "kindstack.dev/orphaned": "2026-01-01T00:00:01.5Z" }, { deletionTimestamp }).releases).toBe(true);
  });

  it.each([
    [
      "that was refused, says nothing of a later one",
      { "kindstack.dev/orphaned": "2025-12-31T23:00:00Z" },
      deletionTimestamp,
    ],
    ["that is not under way", { "kindstack.dev/orphaned": "2026-01-01T00:00:00Z" }, undefined],
    ["with a record that is no time", { "kindstack.dev/orphaned": "true" }, deletionTimestamp],
  ])("%s", (_name, annotations, deletionTimestamp) => {
    expect(obeyed(annotations, { deletionTimestamp }).releases).toBe(false);
  });
});
