import type { EngineEvent } from "@pulumi/pulumi/automation/events";
import { describe, expect, it } from "vitest";
import { reportOf } from "../../src/automation/event-log";

const urn = (name: string) => `urn:pulumi:stack::kindstack::pulumi-nodejs:dynamic/test:Thing::${name}`;

/** A step that ended, as the engine logs it. */
function outputs(op: string, name: string, state: object | null = { outputs: { value: 1 } }): object {
  const metadata = { op, urn: urn(name), type: "pulumi-nodejs:dynamic/test:Thing", new: state, old: null };
  return { sequence: 1, timestamp: 1, resOutputsEvent: { metadata, planning: false } };
}

const diagnostic = (message: string, severity = "error", about?: string) => ({
  diagnosticEvent: { ...(about && { urn: urn(about) }), prefix: "", message, color: "never", severity },
});

const read = (...events: object[]) => reportOf(events as EngineEvent[]);

describe("the report of events", () => {
  it("counts what was done and keeps the resources with their outputs", () => {
    const made = [outputs("create", "a"), outputs("update", "b"), outputs("same", "c")];
    const report = read(...made, outputs("delete", "d", null));
    expect(report.changes).toEqual({ create: 1, update: 1, delete: 1 });
    expect(report.resources).toMatchObject([
      { name: "a", operation: "create", urn: urn("a"), outputs: { value: 1 } },
      { name: "b", operation: "update" },
      { name: "c", operation: "same" },
    ]);
  });

  it("keeps what was deleted as it last was, but not what was replaced", () => {
    const deleted = outputs("delete", "a", null) as { resOutputsEvent: { metadata: { old: object | null } } };
    deleted.resOutputsEvent.metadata.old = { outputs: { value: 1 } };
    const report = read(deleted, outputs("delete-replaced", "b", null));
    expect(report.deleted).toMatchObject([{ name: "a", operation: "delete", outputs: { value: 1 } }]);
  });

  it("leaves out the stack itself and the provider", () => {
    const type = "pulumi:pulumi:Stack";
    const stack = { op: "create", urn: `urn:pulumi:s::p::${type}::p-s`, type, new: {} };
    const provider = { ...stack, type: "pulumi:providers:pulumi-nodejs" };
    const report = read({ resOutputsEvent: { metadata: stack } }, { resOutputsEvent: { metadata: provider } });
    expect(report).toEqual({ changes: {}, resources: [], deleted: [], gone: [], failed: [], errors: [] });
  });

  it("says what an update corrected of what a refresh had found, and nothing where nothing is corrected", () => {
    const drift = [{ field: "spec.replicas", wanted: 1, live: 3, by: "someone" }];
    const found = (name: string) => outputs("refresh", name, { outputs: { value: 1, drift } });
    const report = read(found("a"), found("b"), outputs("update", "a"), outputs("same", "b"), outputs("update", "c"));
    expect(report.resources.map(({ corrected }) => corrected)).toEqual([drift, undefined, undefined]);
    expect(report.changes).toEqual({ update: 2 });
  });

  it("says of a plugin's resource what its refresh has changed, and an update has corrected", () => {
    const bucket = { urn: "urn:pulumi:s::p::a:b:C::bucket", type: "a:b:C" };
    const step = (op: string, old: object, state: object) => {
      return { resOutputsEvent: { metadata: { ...bucket, op, old: { outputs: old }, new: { outputs: state } } } };
    };
    const made = { acl: "private", tags: { a: 1 }, size: 1 };
    const found = { acl: "public", tags: { a: 1 } };
    const report = read(step("refresh", made, found), step("update", found, made));
    expect(report.resources[0]?.corrected).toEqual([
      { field: "acl", wanted: "private", live: "public" },
      { field: "size", wanted: 1 },
    ]);
    expect(read(step("refresh", made, found), step("same", found, found)).resources[0]?.corrected).toBeUndefined();
  });

  it("takes no drift that has another form", () => {
    const found = outputs("refresh", "a", { outputs: { drift: ["spec.replicas"] } });
    expect(read(found, outputs("update", "a")).resources[0]?.corrected).toBeUndefined();
  });

  it("keeps the new resource, whether it was made before the old one was deleted or after", () => {
    const [create, replace] = ["create-replacement", "replace"].map((op) =>
      outputs(op, "a", { outputs: { value: 2 } }),
    );
    const remove = outputs("delete-replaced", "a", null);
    for (const events of [
      [create, replace, remove],
      [remove, replace, create],
    ] as object[][]) {
      const report = read(...events);
      expect(report.resources).toMatchObject([{ name: "a", outputs: { value: 2 } }]);
      expect(report.changes.replace).toBe(1);
    }
  });

  it("takes the later of two states: what a refresh saw, then what the update made of it", () => {
    const report = read(outputs("refresh", "a", { outputs: { drifted: true } }), outputs("update", "a"));
    expect(report.resources).toMatchObject([{ operation: "update", outputs: { value: 1 } }]);
    expect(report.changes).toEqual({ update: 1 });
  });

  it("tells of what a refresh found gone as deleted, unless it is made again", () => {
    const report = read(outputs("refresh", "a", null), outputs("refresh", "b", null), outputs("create", "b"));
    expect(report.gone.map(({ name, operation }) => [name, operation])).toEqual([["a", "delete"]]);
    expect(report.changes).toEqual({ create: 1, delete: 1 });
    expect(report.deleted).toEqual([]);
  });

  it("collects errors with their resource, without the marks of colours, and no warnings", () => {
    const report = read(
      diagnostic("<{%fg 1%}>error: <{%reset%}>refused\n", "error", "a"),
      diagnostic("<{%reset%}>update failed<{%reset%}>\n"),
      diagnostic("something is deprecated", "warning"),
    );
    expect(report.errors).toEqual([{ urn: urn("a"), message: "error: refused" }, { message: "update failed" }]);
  });

  it("names the resources that failed", () => {
    const metadata = { op: "create", urn: urn("a"), type: "t" };
    expect(read({ resOpFailedEvent: { metadata, status: 0, steps: 0 } }).failed).toEqual([urn("a")]);
  });
});
