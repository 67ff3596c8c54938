import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { KubernetesClient } from "../../providers/kubernetes/client";
import { Blockers } from "../../src/controller/blockers";
import { namespace, tenantObject } from "../objects";
import { lookupOf } from "../providers/kubernetes/lookup-of";
import { stub } from "../stub";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const waitedFor = namespace("acme-dev");

/** An object that waits for the namespace, which the API server has when it is asked. */
function waiting(find: KubernetesClient["find"]) {
  const context = { cache: { view: () => undefined }, client: stub<KubernetesClient>({ find }) };
  const failure = { errorClass: "pending", reason: "Terminating", message: "it ends", object: waitedFor } as const;
  return { context, blockers: new Blockers(context, tenantObject(), [failure]) };
}

it("still waits for what is there when the API server takes longer to say so than the time between two questions", async () => {
  const { context, blockers } = waiting(async () => {
    await vi.advanceTimersByTimeAsync(20_000);
    return lookupOf(waitedFor);
  });
  vi.advanceTimersByTime(60_000);
  expect((await blockers.look(context, tenantObject())).remainingMs).toBeGreaterThan(0);
});

it("asks the API server again only after it was told that the last answer counts", async () => {
  const find = vi.fn(async () => lookupOf(waitedFor));
  const { context, blockers } = waiting(find);
  vi.advanceTimersByTime(5_000);
  await blockers.look(context, tenantObject());
  const looked = await blockers.look(context, tenantObject()); // a look changes nothing
  expect(find).toHaveBeenCalledTimes(2);
  blockers.looked(looked);
  await blockers.look(context, tenantObject());
  expect(find).toHaveBeenCalledTimes(2);
});
