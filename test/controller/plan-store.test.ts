import { createSecretKey } from "node:crypto";
import { pino } from "pino";
import { expect, it, vi } from "vitest";
import { ApiError, type KubernetesClient, type LiveObject, type Manifest } from "../../providers/kubernetes/client";
import type { Informer } from "../../src/cache/informer";
import type { InformerFactory } from "../../src/cache/informer-factory";
import { PlanStore, type PlanStoreOptions } from "../../src/controller/plan-store";
import { PLAN_TYPE, type PlanSpec } from "../../stacks/contract/plan";
import { tenant } from "../../stacks/kinds/tenant/kind";
import { tenantObject } from "../objects";
import { stub } from "../stub";

const TYPE = { ...PLAN_TYPE, plural: "plans", namespaced: true };

const optionsOf = (client: KubernetesClient, create: InformerFactory["create"]): PlanStoreOptions => ({
  ...{ client, informers: stub<InformerFactory>({ create }), namespace: "default", onChange: () => {} },
  planKey: async () => createSecretKey(Buffer.alloc(32)),
  logger: pino({ level: "silent" }),
});

it("watches nothing where the API server serves plans and no approvals", async () => {
  const resourceType = async (_: string, kind: string) => {
    if (kind === "Approval") throw new ApiError(404, "UnknownKind", "it is not served");
    return TYPE;
  };
  const create = vi.fn(async () => stub<Informer>({}));
  expect(await PlanStore.open(optionsOf(stub<KubernetesClient>({ resourceType }), create))).toBeUndefined();
  expect(create).not.toHaveBeenCalled();
});

it("forgets what it wrote when the API server's data was restored: its versions are yet to come", async () => {
  const plans = stub<Informer>({ resourceVersion: "100", get: () => undefined, byIndex: () => [] });
  let restore: (() => void) | undefined;
  const apply = async (plan: Manifest) => ({
    object: { ...plan, metadata: { ...plan.metadata, resourceVersion: "500" } } as LiveObject,
    created: true,
  });
  const client = stub<KubernetesClient>({ resourceType: async () => TYPE, apply });
  const options = optionsOf(client, async (_type, { onRestore }) => {
    restore ??= onRestore;
    return plans;
  });
  const object = tenantObject();
  const store = await PlanStore.open(options);
  await store?.write(
    { client, kind: tenant },
    object,
    { digest: "d", cause: {} } as PlanSpec,
    { state: "Pending" },
    { isTombstone: false },
  );
  expect(store?.get(tenant, object)).toBeDefined();
  restore?.();
  expect(store?.get(tenant, object)).toBeUndefined();
});
