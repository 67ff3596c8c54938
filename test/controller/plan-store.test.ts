import { createSecretKey } from "node:crypto";
import { pino } from "pino";
import { expect, it, vi } from "vitest";
import { ApiError, type KubernetesClient } from "../../providers/kubernetes/client";
import type { InformerFactory } from "../../src/cache/informer-factory";
import { PlanStore, type PlanStoreOptions } from "../../src/controller/plan-store";

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
