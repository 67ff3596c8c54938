import { describe, expect, it } from "vitest";
import type { LiveObject } from "../../providers/kubernetes/client";
import { ownedFieldsDigest } from "../../providers/kubernetes/ownership";
import { findDrift } from "../../src/controller/drift";
import type { CachedView } from "../../src/controller/kind-cache";
import { applied, namespace } from "../objects";

const id = "v1/Namespace//acme";
const asApplied = namespace("acme", { managedFields: [applied("kindstack", { "f:metadata": { "f:labels": {} } })] });
const records = [{ id, fields: ownedFieldsDigest(asApplied) }];

/** What a cache at version 100 shows of the object. */
const showing =
  (object: LiveObject | undefined, cacheVersion = "100") =>
  (): CachedView => ({ object, cacheVersion });
const edited = (resourceVersion: string) =>
  namespace("acme", { resourceVersion, managedFields: [applied("kindstack", { "f:metadata": {} })] });

const edit = { edited: [id], contents: [expect.any(String)] };
const none = { edited: [], missing: [], contents: [], unseen: [] };

describe("findDrift", () => {
  it("finds nothing in an object that is as it was applied", () => {
    expect(findDrift(records, new Map(), showing(asApplied), [])).toEqual(none);
  });

  it("finds an object of which a user changed an applied field", () => {
    expect(findDrift(records, new Map(), showing(edited("101")), [])).toEqual({ ...none, ...edit });
  });

  it("finds an object that is on its way out", () => {
    const terminating = { ...asApplied.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" };
    const view = showing({ ...asApplied, metadata: terminating });
    expect(findDrift(records, new Map(), view, [])).toEqual({ ...none, missing: [id] });
  });

  it("leaves out what no one watches", () => {
    expect(findDrift(records, new Map(), () => undefined, [])).toEqual(none);
  });
});

describe("a cache that is behind Kindstack's own last apply", () => {
  const appliedVersions = new Map([[id, "101"]]);
  const unseen = { ...none, unseen: [id] };

  it("is not believed when it shows the object as it was before", () => {
    expect(findDrift(records, appliedVersions, showing(edited("99")), [])).toEqual(unseen);
  });

  it("is not believed when it does not show the object yet", () => {
    expect(findDrift(records, appliedVersions, showing(undefined, "100"), [])).toEqual(unseen);
  });

  it("is believed once it has seen that apply", () => {
    expect(findDrift(records, appliedVersions, showing(edited("101")), [])).toEqual({ ...none, ...edit });
    expect(findDrift(records, appliedVersions, showing(undefined, "101"), [])).toEqual({ ...none, missing: [id] });
  });

  it("is compared by number, not by text", () => {
    expect(findDrift(records, new Map([[id, "1000"]]), showing(edited("999")), [])).toEqual(unseen);
  });
});
