import pino from "pino";
import { describe, expect, it, vi } from "vitest";
import type { LiveObject } from "../../providers/kubernetes/client";
import type { KindContext } from "../../src/controller/context";
import { maintain } from "../../src/controller/maintain";
import { ObjectState } from "../../src/controller/object-state";
import { kindApiVersion } from "../../stacks/contract/kind";
import type { CommonStatus } from "../../stacks/contract/object";
import { capsuleTenant } from "../../stacks/kinds/capsule-tenant/kind";
import { liveObject } from "../objects";
import { stub } from "../stub";
import { facts } from "./facts";

const RECORDED = "v1/ResourceQuota/acme-blue/capsule-acme-0";
const quota = liveObject({ kind: "ResourceQuota", metadata: { namespace: "acme-blue", name: "capsule-acme-0" } });

/** Maintains a tenant whose update has made one quota. @returns what the kind was called with */
async function maintainWith(shown: LiveObject | undefined) {
  const maintained = vi.fn(async () => undefined);
  const status: CommonStatus = { stack: { name: "s", program: "p", resources: [{ id: RECORDED, fields: "f" }] } };
  const spec = { owner: { name: "alice", kind: "User" } };
  const type = { apiVersion: kindApiVersion(capsuleTenant), kind: "Tenant" };
  const object = liveObject({ ...type, metadata: { name: "acme" }, spec, status });
  const context = {
    kind: { ...capsuleTenant, capabilities: { maintain: maintained } },
    client: stub<KindContext["client"]>({}),
    cache: stub<KindContext["cache"]>({
      owned: () => (shown === undefined ? [] : [shown]),
      view: (id: string) => (id === RECORDED ? { object: shown, cacheVersion: "1" } : undefined),
    }),
    writer: stub<KindContext["writer"]>({}),
  };
  const step = { context, object, state: new ObjectState(), logger: pino({ level: "silent" }) };
  expect(await maintain({ ...step, facts: facts({ status }) })).toBe(0);
  return maintained;
}

describe("an object is maintained", () => {
  it("by what the caches show of what it owns", async () => {
    const maintained = await maintainWith(quota);
    expect(maintained).toHaveBeenCalledWith(expect.anything(), expect.objectContaining({ owned: [quota] }));
  });

  it("not while they lack something that its update has made: it would be left out of account", async () => {
    expect(await maintainWith(undefined)).not.toHaveBeenCalled();
  });
});
