import { describe, expect, it } from "vitest";
import type { LiveObject } from "../../providers/kubernetes/client";
import type { PlannedChange } from "../../src/automation/planned-changes";
import { deletedWith, findUntracked, untrackedBeside } from "../../src/plan/untracked";
import { memcached } from "../../stacks/kinds/memcached/kind";
import { acme, applied, marksOf, namespace } from "../objects";

describe("untracked resources", () => {
  const managedFields = [applied("kindstack", {})];
  const made = { ...marksOf(acme, { created: true }), managedFields };

  it("are what Kindstack has applied for the owner and is not to be kept", () => {
    const kept = namespace("acme-dev", made);
    const untracked = namespace("acme-old", made);
    expect(findUntracked([kept, untracked], new Set(["v1/Namespace//acme-dev"]))).toEqual([untracked]);
  });

  it("are there once, as they were read last", () => {
    const [cached, listed] = ["100", "101"].map((resourceVersion) =>
      namespace("acme-old", { ...made, resourceVersion }),
    );
    expect(findUntracked([cached, listed] as LiveObject[], new Set())).toEqual([listed]);
  });

  it("are not what is to be kept and shows in another version of its group", () => {
    const shown = { ...namespace("acme-dev", made), apiVersion: "example.com/v1", kind: "Widget" };
    expect(findUntracked([shown], new Set(["example.com/v1alpha1/Widget//acme-dev"]))).toEqual([]);
    expect(findUntracked([shown], new Set(["example.org/v1/Widget//acme-dev"]))).toEqual([shown]);
  });

  it("are not what is on its way out", () => {
    const leaving = namespace("acme-old", { ...made, deletionTimestamp: "2026-01-01T00:00:00Z" });
    expect(findUntracked([leaving], new Set())).toEqual([]);
  });

  it("are not what a user made as a copy, with its labels", () => {
    const copy = namespace("acme-copy", { ...made, managedFields: [applied("someone", {})] });
    expect(findUntracked([copy], new Set())).toEqual([]);
  });

  it("are, of a plan, neither what it changes nor, of others' objects, what it changes", () => {
    const [changed, cut, theirs] = [namespace("changed", made), namespace("cut", made), namespace("theirs", made)];
    const change: PlannedChange = { urn: "u", type: "t", name: "n", operation: "delete" };
    const ofObject = { ...change, old: { inputs: { manifest: changed }, outputs: {} } };
    const ofRow = { ...change, old: { inputs: { table: "a" }, outputs: {} } };
    expect(untrackedBeside([changed, cut], [ofRow, ofObject], [changed, theirs])).toEqual([cut, theirs]);
  });
});

it("what others made is deleted with its object if the kind says so, and it is not on its way out", async () => {
  const type = { apiVersion: "v1", kind: "Namespace" };
  const keysOf = () => ["acme"];
  const watches = [{ ...type, keysOf, selectorOf: () => "", deletedWithObject: true }];
  const capabilities = (given: object) => ({ ...memcached, capabilities: given }) as typeof memcached;
  const objects = [namespace("theirs"), namespace("leaving", { deletionTimestamp: "2026-01-01T00:00:00Z" })];
  const found = await deletedWith(capabilities({ watches }), "acme", objects);
  expect(found).toEqual([objects[0]]);
  const seen = watches.map((watch) => ({ ...watch, deletedWithObject: false }));
  expect(await deletedWith(capabilities({ watches: seen }), "acme", objects)).toEqual([]);
  expect(await deletedWith(capabilities({}), "acme", objects)).toEqual([]);
});
