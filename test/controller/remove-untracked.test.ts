import { describe, expect, it } from "vitest";
import type { LiveObject } from "../../providers/kubernetes/client";
import { mayHaveUntracked } from "../../src/controller/decide";
import type { Attempt } from "../../src/controller/facts";
import { findUntracked } from "../../src/plan/untracked";
import { type CommonStatus, FINALIZER } from "../../stacks/contract/object";
import { acme, applied, marksOf, namespace, tenantObject } from "../objects";
import { attempt as attemptWith, facts } from "./facts";

const HELD = { finalizers: [FINALIZER] };
const attempt = (outcome: Attempt["outcome"], uid = acme.uid) => attemptWith({ uid, generation: 1, outcome });
const settled: CommonStatus = { observedGeneration: 1, stack: { name: "tenant.acme", program: "digest" } };
const tenant = (status?: CommonStatus, metadata: object = HELD) => ({
  ...tenantObject({}, metadata),
  ...(status && { status }),
});

it.each([
  ["not before its first update", tenant(undefined, {}), undefined, false],
  ["when its first update was begun by a predecessor", tenant(), undefined, true],
  ["not when a predecessor has brought it about as it is", tenant(settled), undefined, false],
  [
    "when it has changed since a predecessor brought it about",
    tenant(settled, { ...HELD, generation: 2 }),
    undefined,
    true,
  ],
  [
    "when a predecessor was at it",
    tenant({
      ...settled,
      conditions: [
        {
          type: "Reconciling",
          status: "True",
          reason: "Repairing",
          message: "",
          lastTransitionTime: "2026-01-01T00:00:00Z",
        },
      ],
    }),
    undefined,
    true,
  ],
  ["when our last update of it failed", tenant(settled), attempt("retryable"), true],
  [
    "not when our last update of it succeeded",
    tenant(settled, { ...HELD, generation: 2 }),
    attempt("succeeded"),
    false,
  ],
  ["whatever became of another object of its name", tenant(), attempt("succeeded", "another"), true],
])("an object may have made what is in no state %s", (_, object, attempt, expected) => {
  const { metadata, status = {} } = object as LiveObject & { status?: CommonStatus };
  const hasFinalizer = metadata.finalizers?.includes(FINALIZER) ?? false;
  const found = facts({ metadata: { generation: 0, ...metadata }, hasFinalizer, status, attempt });
  expect(mayHaveUntracked(found)).toBe(expected);
});

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
});
