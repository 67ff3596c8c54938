import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Manifest } from "../../providers/kubernetes/client";
import { OBJECT_STUB } from "../../providers/kubernetes/object";
import type { StackResource } from "../../src/automation/event-log";
import { Expectations } from "../../src/controller/own-writes";
import { namespace } from "../objects";

/** A Namespace as an update's events show it. */
function resource(name: string, resourceVersion = "100", uid = `uid-of-${name}`): StackResource {
  const manifest: Manifest = { apiVersion: "v1", kind: "Namespace", metadata: { name } };
  return {
    urn: `urn:pulumi:stack::kindstack::t::namespace/${name}`,
    type: "t",
    name: `namespace/${name}`,
    operation: "create",
    outputs: { __provider: OBJECT_STUB, manifest, resourceVersion, uid, fields: "digest" },
  };
}
const row: StackResource = { ...resource("row"), outputs: { __provider: "another", table: "students" } };

it("what is remembered of an update is the version that each apply left, and nothing of what is no Kubernetes object", () => {
  const expectations = new Expectations();
  expectations.updated({ resources: [resource("acme", "101"), row], deleted: [] });
  expect([...expectations.applied]).toEqual([["v1/Namespace//acme", "101"]]);
});

describe("what an update deleted", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  const deleted = (...one: Parameters<typeof resource>) => {
    const expectations = new Expectations();
    expectations.updated({ resources: [], deleted: [resource(...one)] });
    return expectations;
  };

  it("is known to be deleted though a cache may still show it, until a later update makes it again", () => {
    const expectations = deleted("acme");
    expect(expectations.hasDeleted(namespace("acme"))).toBe(true);
    expect(expectations.hasDeleted(namespace("other"))).toBe(false);
    expectations.updated({ resources: [resource("acme")], deleted: [] });
    expect(expectations.hasDeleted(namespace("acme"))).toBe(false);
  });

  it("is not what others have made of the same name since", () => {
    expect(deleted("acme", "100", "before").hasDeleted(namespace("acme"))).toBe(false);
  });

  it("is forgotten in the end, by when no cache can be that far behind", () => {
    const expectations = deleted("acme");
    vi.advanceTimersByTime(59_000);
    expectations.updated({ resources: [], deleted: [] });
    expect(expectations.hasDeleted(namespace("acme"))).toBe(true);
    vi.advanceTimersByTime(2_000);
    expect(expectations.hasDeleted(namespace("acme"))).toBe(false);
    expectations.updated({ resources: [], deleted: [] });
    expect(expectations.hasDeleted(namespace("acme"))).toBe(false);
  });
});
