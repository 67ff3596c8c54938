import { describe, expect, it, vi } from "vitest";
import type { LiveObject } from "../../providers/kubernetes/client";
import type { Reconcile } from "../../src/controller/context";
import { maintain } from "../../src/controller/maintain";
import { ObjectState } from "../../src/controller/object-state";
import { kindApiVersion } from "../../stacks/contract/kind";
import { capsuleTenant } from "../../stacks/kinds/capsule-tenant/kind";

const RECORDED = "v1/ResourceQuota/acme-blue/capsule-acme-0";
const quota: LiveObject = {
  apiVersion: "v1",
  kind: "ResourceQuota",
  metadata: { namespace: "acme-blue", name: "capsule-acme-0", uid: "uid-quota", resourceVersion: "5" },
};

/** A reconcile of a tenant whose update has made one quota. */
function reconcileWith(shown: LiveObject | undefined): { reconcile: Reconcile; maintained: ReturnType<typeof vi.fn> } {
  const maintained = vi.fn(async () => undefined);
  const object = {
    apiVersion: kindApiVersion(capsuleTenant),
    kind: "Tenant",
    metadata: { name: "acme", uid: "uid-acme", resourceVersion: "1" },
    spec: { owner: { name: "alice", kind: "User" } },
    status: { stack: { name: "tenant.acme", program: "p", resources: [{ id: RECORDED, fields: "f" }] } },
  } as unknown as LiveObject;
  const context = {
    kind: { ...capsuleTenant, capabilities: { maintain: maintained } },
    cache: {
      owned: () => (shown === undefined ? [] : [shown]),
      view: (id: string) => (id === RECORDED ? { object: shown, cacheVersion: "1" } : undefined),
    },
  };
  const facts = { status: object.status };
  const reconcile = { context, object, facts, state: new ObjectState() } as unknown as Reconcile;
  return { reconcile, maintained };
}

describe("an object is maintained", () => {
  it("by what the caches show of what it owns", async () => {
    const { reconcile, maintained } = reconcileWith(quota);
    expect(await maintain(reconcile)).toBe(0);
    expect(maintained).toHaveBeenCalledWith(expect.anything(), expect.objectContaining({ owned: [quota] }));
  });

  it("not while they lack something that its update has made: it would be left out of account", async () => {
    const { reconcile, maintained } = reconcileWith(undefined);
    expect(await maintain(reconcile)).toBe(0);
    expect(maintained).not.toHaveBeenCalled();
  });
});
