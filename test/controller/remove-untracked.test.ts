import { expect, it } from "vitest";
import type { LiveObject } from "../../providers/kubernetes/client";
import { mayHaveUntracked } from "../../src/controller/decide";
import type { Attempt } from "../../src/controller/facts";
import { type CommonStatus, FINALIZER } from "../../stacks/contract/object";
import { acme, tenantObject } from "../objects";
import { attempt as attemptWith, facts, told } from "./facts";

const HELD = { finalizers: [FINALIZER] };
const attempt = (outcome: Attempt["outcome"], uid = acme.uid) => attemptWith({ uid, generation: 1, outcome });
const settled: CommonStatus = { observedGeneration: 1, stack: { name: "tenant.acme", program: "digest" } };
const tenant = (status?: CommonStatus, metadata: object = HELD) => ({
  ...tenantObject({}, metadata),
  ...(status && { status }),
});
const changed = tenant(settled, { ...HELD, generation: 2 });
const repairing = told("Reconciling", "Repairing");

it.each([
  ["not before its first update", tenant(undefined, {}), undefined, false],
  ["when its first update was begun by a predecessor", tenant(), undefined, true],
  ["not when a predecessor has brought it about as it is", tenant(settled), undefined, false],
  ["when it has changed since a predecessor brought it about", changed, undefined, true],
  ["when a predecessor was at it", tenant({ ...settled, conditions: [repairing] }), undefined, true],
  ["when our last update of it failed", tenant(settled), attempt("retryable"), true],
  ["not when our last update of it succeeded", changed, attempt("succeeded"), false],
  ["whatever became of another object of its name", tenant(), attempt("succeeded", "another"), true],
])("an object may have made what is in no state %s", (_, object, attempt, expected) => {
  const { metadata, status = {} } = object as LiveObject & { status?: CommonStatus };
  const hasFinalizer = metadata.finalizers?.includes(FINALIZER) ?? false;
  const found = facts({ metadata: { generation: 0, ...metadata }, hasFinalizer, status, attempt });
  expect(mayHaveUntracked(found)).toBe(expected);
});
