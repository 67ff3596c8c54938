import { describe, expect, it } from "vitest";
import type { LiveObject } from "../../providers/kubernetes/client";
import type { ObjectChange } from "../../src/cache/change";
import { isDeletedInSpiteOfFinalizer, reconcilesAfter } from "../../src/controller/object-item";
import { FINALIZER } from "../../stacks/contract/object";

const object = (metadata: Partial<LiveObject["metadata"]> = {}, status?: object): LiveObject => ({
  apiVersion: "demo.yash.com/v1",
  kind: "PostgresWriter",
  metadata: { name: "a", uid: "1", resourceVersion: "1", generation: 1, finalizers: [FINALIZER], ...metadata },
  ...(status && { status }),
});

const modified = (to: LiveObject, from = object()): ObjectChange => ({ type: "modified", object: to, previous: from });

describe("after a change an object is reconciled", () => {
  const withSpec = (size: number) => ({ ...object(), spec: { size } });
  const annotated = (annotations: Record<string, string>) => object({ annotations });
  const cases: [string, ObjectChange, "now" | "soon" | "never"][] = [
    ["it is new", { type: "added", object: object() }, "now"],
    ["it is gone", { type: "deleted", object: object(), previous: object() }, "now"],
    ["its spec", modified(object({ generation: 2 })), "now"],
    ["its deletion begins", modified(object({ deletionTimestamp: "2026-01-01T00:00:00Z" })), "now"],
    ["its finalizer is removed", modified(object({ finalizers: [] })), "now"],
    ["its finalizer is added", modified(object(), object({ finalizers: [] })), "never"],
    ["it is paused", modified(annotated({ "kindstack.dev/paused": "true" })), "now"],
    ["an update is requested", modified(annotated({ "kindstack.dev/reconcile": "1" })), "now"],
    ["its deletion policy", modified(annotated({ "kindstack.dev/deletion-policy": "Orphan" })), "now"],
    ["a label", modified(object({ labels: { team: "a" } })), "soon"],
    ["an annotation", modified(annotated({ team: "a" })), "soon"],
    ["another client writes its status", modified(object({}, { foreign: true })), "soon"],
    ["its own status is written", modified(object({}, { own: true })), "never"],
    ["a restore of an earlier spec", modified(object({ generation: 1 }), object({ generation: 2 })), "now"],
    ["a restore, and a change since", { ...modified(withSpec(2), withSpec(1)), restored: true } as ObjectChange, "now"],
    ["a new default of its CRD", modified(withSpec(2), withSpec(1)), "never"],
    ["only its version", modified(object({ resourceVersion: "2" })), "never"],
  ];
  it.each(cases)("%s", (_, change, when) => {
    expect(reconcilesAfter(change, ({ status }) => (status as { own?: true } | undefined)?.own === true)).toBe(when);
  });
});

describe("an object was deleted in spite of its finalizer", () => {
  const deletion = (last: LiveObject, reported?: true): ObjectChange => ({
    type: "deleted",
    object: last,
    previous: object(),
    ...(reported && { reported }),
  });
  it.each<[string, ObjectChange, boolean]>([
    ["with the finalizer in its last state, and no deletion timestamp", deletion(object(), true), true],
    ["not when no event has shown its last state", deletion(object()), false],
    ["not when its deletion had begun", deletion(object({ deletionTimestamp: "2026-01-01T00:00:00Z" }), true), false],
    ["not without the finalizer", deletion(object({ finalizers: [] }), true), false],
    ["not while it is there", modified(object()), false],
  ])("%s", (_, change, expected) => {
    expect(isDeletedInSpiteOfFinalizer(change)).toBe(expected);
  });
});
