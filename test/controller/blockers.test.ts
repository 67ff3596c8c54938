import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { KubernetesClient } from "../../providers/kubernetes/client";
import { Blockers } from "../../src/controller/blockers";
import { namespace, tenantObject } from "../objects";
import { lookupOf } from "../providers/kubernetes/lookup-of";
import { stub } from "../stub";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it("still waits for what is there when the API server takes longer to say so than the time between two questions", async () => {
  const waitedFor = namespace("acme-dev");
  const find = async () => {
    await vi.advanceTimersByTimeAsync(20_000);
    return lookupOf(waitedFor);
  };
  const context = { cache: { view: () => undefined }, client: stub<KubernetesClient>({ find }) };
  const failure = { errorClass: "pending", reason: "Terminating", message: "it ends", object: waitedFor } as const;
  const blockers = new Blockers(context, tenantObject(), [failure]);
  vi.advanceTimersByTime(60_000);
  expect((await blockers.look(context, tenantObject())).remainingMs).toBeGreaterThan(0);
});

it("asks the API server again only after it was told that the last answer counts", async () => {
  const waitedFor = namespace("acme-dev");
  const find = vi.fn(async () => lookupOf(waitedFor));
  const context = { cache: { view: () => undefined }, client: stub<KubernetesClient>({ find }) };
  const failure = { errorClass: "pending", reason: "Terminating", message: "it ends", object: waitedFor } as const;
  const blockers = new Blockers(context, tenantObject(), [failure]);
  vi.advanceTimersByTime(5_000);
  await blockers.look(context, tenantObject());
  const looked = await blockers.look(context, tenantObject()); // a look changes nothing
  expect(find).toHaveBeenCalledTimes(2);
  blockers.looked(looked);
  await blockers.look(context, tenantObject());
  expect(find).toHaveBeenCalledTimes(2);
});
