import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ApiError, type LiveObject } from "../../../providers/kubernetes/client";
import {
  QuotaReservations,
  RESERVATION_MS,
  RESERVATIONS_ANNOTATION,
} from "../../../stacks/capsule-tenant/admission/reservations";
import type { AdmissionView } from "../../../stacks/contract/admission";

/** A tenant and its namespaces, as an API server keeps them and as a cache that may be stale shows them. */
function tenantWith(namespaceQuota: number | undefined) {
  const stored: LiveObject = {
    apiVersion: "capsule.clastix.io/v1alpha1",
    kind: "Tenant",
    metadata: { name: "oil", uid: "uid-oil", resourceVersion: "1", annotations: {} },
    spec: { owner: { kind: "User", name: "alice" }, ...(namespaceQuota !== undefined && { namespaceQuota }) },
  };
  const server = { stored, cached: structuredClone(stored), reads: 0, writes: 0, conflicts: 0 };
  const client = {
    get: async () => {
      server.reads++;
      return structuredClone(server.stored);
    },
    mergePatch: async (_type: unknown, _name: unknown, _namespace: unknown, { metadata }: LiveObject) => {
      const { resourceVersion } = server.stored.metadata;
      if (metadata.resourceVersion !== resourceVersion) {
        server.conflicts++;
        throw new ApiError(409, "Conflict", "the object has been modified");
      }
      server.writes++;
      server.stored = structuredClone(server.stored);
      Object.assign(server.stored.metadata, {
        annotations: { ...server.stored.metadata.annotations, ...metadata.annotations },
        resourceVersion: String(Number(resourceVersion) + 1),
      });
      return structuredClone(server.stored);
    },
  };
  const view = {
    client,
    get: () => server.cached,
    type: () => ({}),
    byIndex: () => [],
    version: () => "1",
  } as unknown as AdmissionView;
  return { tenant: server.cached, view, server };
}

function heldBy({ metadata: { annotations } }: LiveObject): string[] {
  return Object.keys(JSON.parse(annotations?.[RESERVATIONS_ANNOTATION] ?? "{}"));
}

describe("a place in a tenant's quota that is held for a namespace which never came", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it("is free after a while", async () => {
    const { tenant, view, server } = tenantWith(1);
    const reservations = new QuotaReservations();
    expect(await reservations.reserve(view, tenant, "never", false)).toBeUndefined();
    expect(await reservations.reserve(view, tenant, "next", false)).toBe(1);
    vi.advanceTimersByTime(RESERVATION_MS);
    expect(await reservations.reserve(view, tenant, "next", false)).toBeUndefined();
    expect(heldBy(server.stored)).toEqual(["next"]);
  });

  it("is free as soon when the clock is set back by hours", async () => {
    const { tenant, view } = tenantWith(1);
    const reservations = new QuotaReservations();
    await reservations.reserve(view, tenant, "never", false);
    vi.setSystemTime(Date.now() - 6 * 3_600_000);
    vi.advanceTimersByTime(RESERVATION_MS);
    expect(await reservations.reserve(view, tenant, "next", false)).toBeUndefined();
  });
});

describe("the Tenant as the cache shows it", () => {
  it("is enough for a dry run, and for a reservation while it is current", async () => {
    const { tenant, view, server } = tenantWith(2);
    const reservations = new QuotaReservations();
    expect(await reservations.reserve(view, tenant, "tried", true)).toBeUndefined();
    expect(await reservations.reserve(view, tenant, "first", false)).toBeUndefined();
    expect(server).toMatchObject({ reads: 0, writes: 1 });
  });

  it("is replaced by what was written while others waited", async () => {
    const { tenant, view, server } = tenantWith(3);
    const reservations = new QuotaReservations();
    const names = ["one", "two", "three", "four"];
    const answers = await Promise.all(names.map((name) => reservations.reserve(view, tenant, name, false)));
    expect(answers).toEqual([undefined, undefined, undefined, 3]);
    expect(heldBy(server.stored)).toEqual(["one", "two", "three"]);
    expect(server).toMatchObject({ reads: 1, writes: 3, conflicts: 0 });
  });

  it("is read again when another replica took the last place", async () => {
    const { tenant, view, server } = tenantWith(1);
    expect(await new QuotaReservations().reserve(view, tenant, "there", false)).toBeUndefined();
    expect(await new QuotaReservations().reserve(view, tenant, "here", false)).toBe(1);
    expect(server).toMatchObject({ reads: 1, conflicts: 1 });
  });

  it("refuses nothing, and grants nothing without a quota, before it was read again", async () => {
    const { tenant, view, server } = tenantWith(0);
    server.stored = tenantWith(1).server.stored;
    expect(await new QuotaReservations().reserve(view, tenant, "raised", false)).toBeUndefined();
    const unlimited = tenantWith(undefined);
    unlimited.server.stored = tenantWith(0).server.stored;
    expect(await new QuotaReservations().reserve(unlimited.view, unlimited.tenant, "limited", false)).toBe(0);
  });
});
