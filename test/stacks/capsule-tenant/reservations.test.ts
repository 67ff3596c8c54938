import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { LiveObject } from "../../../providers/kubernetes/client";
import {
  QuotaReservations,
  RESERVATION_MS,
  RESERVATIONS_ANNOTATION,
} from "../../../stacks/capsule-tenant/admission/reservations";
import type { AdmissionView } from "../../../stacks/contract/admission";

/** A tenant that may have one namespace and has none, as an API server keeps it. */
function tenantOfOne(): { tenant: LiveObject; view: AdmissionView } {
  const tenant = {
    apiVersion: "capsule.clastix.io/v1alpha1",
    kind: "Tenant",
    metadata: { name: "oil", uid: "uid-oil", resourceVersion: "1", annotations: {} },
    spec: { owner: { kind: "User", name: "alice" }, namespaceQuota: 1 },
  } satisfies LiveObject;
  const view = {
    client: {
      get: async () => tenant,
      mergePatch: async (_type: unknown, _name: unknown, _namespace: unknown, { metadata }: LiveObject) =>
        Object.assign(tenant.metadata.annotations, { ...metadata.annotations }),
    },
    type: () => ({}),
    byIndex: () => [],
    version: () => "1",
  } as unknown as AdmissionView;
  return { tenant, view };
}

describe("a place in a tenant's quota that is held for a namespace which never came", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it("is free after a while", async () => {
    const { tenant, view } = tenantOfOne();
    const reservations = new QuotaReservations();
    expect(await reservations.reserve(view, tenant, "never", false)).toBeUndefined();
    expect(await reservations.reserve(view, tenant, "next", false)).toBe(1);
    vi.advanceTimersByTime(RESERVATION_MS);
    expect(await reservations.reserve(view, tenant, "next", false)).toBeUndefined();
    expect(tenant.metadata.annotations).toHaveProperty([RESERVATIONS_ANNOTATION]);
  });

  it("is free as soon when the clock is set back by hours", async () => {
    const { tenant, view } = tenantOfOne();
    const reservations = new QuotaReservations();
    await reservations.reserve(view, tenant, "never", false);
    vi.setSystemTime(Date.now() - 6 * 3_600_000);
    vi.advanceTimersByTime(RESERVATION_MS);
    expect(await reservations.reserve(view, tenant, "next", false)).toBeUndefined();
  });
});
