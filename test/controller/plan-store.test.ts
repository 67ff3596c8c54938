import { createSecretKey } from "node:crypto";
import { pino } from "pino";
import { expect, it, vi } from "vitest";
import { ApiError, type KubernetesClient, type LiveObject } from "../../providers/kubernetes/client";
import type { InformerFactory } from "../../src/cache/informer-factory";
import { PlanStore, type PlanStoreOptions } from "../../src/controller/plan-store";
import type { PlanSpec, PlanStatus } from "../../stacks/contract/plan";
import { tenant } from "../../stacks/kinds/tenant/kind";
import { tenantObject } from "../objects";

it("watches nothing where the API server serves plans and no approvals", async () => {
  const resourceType = async (_: string, kind: string) => {
    if (kind === "Approval") throw new ApiError(404, "UnknownKind", "it is not served");
  };
  const create = vi.fn(resourceType);
  const options: PlanStoreOptions = {
    client: { resourceType } as unknown as KubernetesClient,
    informers: { create: ({ kind }: { kind: string }) => create("", kind) } as unknown as InformerFactory,
    planKey: async () => createSecretKey(Buffer.alloc(32)),
    namespace: "default",
    onChange: () => {},
    logger: pino({ level: "silent" }),
  };
  expect(await PlanStore.open(options)).toBeUndefined();
  expect(create).not.toHaveBeenCalled();
});

it("forgets what it wrote when the API server's data was restored: its versions are yet to come", async () => {
  const plans = { resourceVersion: "100", get: () => undefined, byIndex: () => [] };
  let restore: (() => void) | undefined;
  const apply = async (plan: LiveObject) => ({
    object: { ...plan, metadata: { ...plan.metadata, resourceVersion: "500" } },
  });
  const options: PlanStoreOptions = {
    client: { resourceType: async () => {}, apply } as unknown as KubernetesClient,
    informers: {
      create: async (_type: unknown, { onRestore }: { onRestore?: () => void }) => {
        restore ??= onRestore;
        return plans;
      },
    } as unknown as InformerFactory,
    planKey: async () => createSecretKey(Buffer.alloc(32)),
    namespace: "default",
    onChange: () => {},
    logger: pino({ level: "silent" }),
  };
  const object = tenantObject();
  const store = await PlanStore.open(options);
  await store?.write(
    { client: options.client as KubernetesClient, kind: tenant },
    object,
    { digest: "d", cause: {} } as PlanSpec,
    { state: "Pending" } as PlanStatus,
  );
  expect(store?.get(tenant, object)).toBeDefined();
  restore?.();
  expect(store?.get(tenant, object)).toBeUndefined();
});
