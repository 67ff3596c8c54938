import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Manifest } from "../../providers/kubernetes/client";
import { OBJECT_STUB } from "../../providers/kubernetes/object";
import type { StackResource } from "../../src/automation/event-log";
import { Expectations, ReadYourWrites } from "../../src/controller/own-writes";
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

  it("is known to be deleted though a cache may still show it", () => {
    const expectations = new Expectations();
    expectations.updated({ resources: [], deleted: [resource("acme")] });
    expect(expectations.hasDeleted(namespace("acme"))).toBe(true);
    expect(expectations.hasDeleted(namespace("other"))).toBe(false);
  });

  it("is no longer so when a later update makes it again", () => {
    const expectations = new Expectations();
    expectations.updated({ resources: [], deleted: [resource("acme")] });
    expectations.updated({ resources: [resource("acme")], deleted: [] });
    expect(expectations.hasDeleted(namespace("acme"))).toBe(false);
  });

  it("is not what others have made of the same name since", () => {
    const expectations = new Expectations();
    expectations.updated({ resources: [], deleted: [resource("acme", "100", "before")] });
    expect(expectations.hasDeleted(namespace("acme"))).toBe(false);
  });

  it("is forgotten in the end, by when no cache can be that far behind", () => {
    const expectations = new Expectations();
    expectations.updated({ resources: [], deleted: [resource("acme")] });
    vi.advanceTimersByTime(59_000);
    expectations.updated({ resources: [], deleted: [] });
    expect(expectations.hasDeleted(namespace("acme"))).toBe(true);
    vi.advanceTimersByTime(2_000);
    expect(expectations.hasDeleted(namespace("acme"))).toBe(false);
    expectations.updated({ resources: [], deleted: [] });
    expect(expectations.hasDeleted(namespace("acme"))).toBe(false);
  });
});

describe("the newest of an object", () => {
  it("is what was written last as long as the cache is behind that", () => {
    const writes = new ReadYourWrites();
    const written = writes.record(namespace("acme", { resourceVersion: "1000" }));
    expect(writes.latest(namespace("acme", { resourceVersion: "999" }))).toBe(written);
  });

  it("is what the cache shows when that is as new or newer, from then on", () => {
    const writes = new ReadYourWrites();
    writes.record(namespace("acme", { resourceVersion: "1000" }));
    const newer = namespace("acme", { resourceVersion: "1001" });
    expect(writes.latest(newer)).toBe(newer);
    writes.forgetShown([newer]);
    const stale = namespace("acme", { resourceVersion: "999" });
    expect(writes.latest(stale)).toBe(stale);
  });

  it("is what the cache shows when it is another object of that name", () => {
    const writes = new ReadYourWrites();
    writes.record(namespace("acme", { resourceVersion: "1000" }));
    const successor = namespace("acme", { uid: "another", resourceVersion: "999" });
    expect(writes.latest(successor)).toBe(successor);
  });
});
