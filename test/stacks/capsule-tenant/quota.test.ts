import { describe, expect, it } from "vitest";
import type { LiveObject, Manifest, ObjectMeta } from "../../../providers/kubernetes/client";
import { balanceQuotas } from "../../../stacks/capsule-tenant/quota";
import { labelled, oilTenant } from "./objects";

const tenant = oilTenant({ resourceQuotas: [{ hard: { pods: 10, "requests.memory": "3Gi" } }] });

/** The ResourceQuota of a namespace, as counted by the API server. */
function quota(
  namespace: string,
  { hard, used }: { hard: Record<string, string>; used?: Record<string, string> },
  metadata: Partial<ObjectMeta> = {},
): LiveObject {
  return {
    apiVersion: "v1",
    kind: "ResourceQuota",
    metadata: {
      name: "capsule-oil-0",
      namespace,
      uid: `uid-of-${namespace}`,
      resourceVersion: "7",
      labels: { "capsule.clastix.io/tenant": "oil", "capsule.clastix.io/resource-quota": "0" },
      ...metadata,
    } as LiveObject["metadata"],
    spec: { hard },
    status: used === undefined ? {} : { hard, used },
  };
}
const labels = { "capsule.clastix.io/tenant": "oil", "capsule.clastix.io/resource-quota": "0" };
const hardOf = (manifest: Manifest | undefined) =>
  (manifest as { spec?: { hard: Record<string, string> } } | undefined)?.spec?.hard ?? {};
const none = { pods: "0", "requests.memory": "0" };

async function written(owned: LiveObject[]): Promise<Manifest[]> {
  const manifests: Manifest[] = [];
  await balanceQuotas(tenant, {
    owned,
    apply: async (manifest, fieldManager) => {
      expect(fieldManager).toBe("kindstack-quota");
      manifests.push(manifest);
    },
  });
  return manifests;
}

describe("the balance of a tenant's quotas", () => {
  it("is written with what the tenant uses and may use, onto the version that was read", async () => {
    const used = { pods: "2", "requests.memory": "512Mi" };
    const [first, second, ...others] = await written([
      quota("oil-a", { hard: { pods: "2", "requests.memory": "512Mi" }, used }),
      quota("oil-b", { hard: none, used: none }),
    ]);
    expect(first).toEqual({
      apiVersion: "v1",
      kind: "ResourceQuota",
      metadata: {
        name: "capsule-oil-0",
        namespace: "oil-a",
        uid: "uid-of-oil-a",
        resourceVersion: "7",
        annotations: {
          "quota.capsule.clastix.io/used-pods": "2",
          "quota.capsule.clastix.io/hard-pods": "10",
          "quota.capsule.clastix.io/used-requests.memory": "512Mi",
          "quota.capsule.clastix.io/hard-requests.memory": "3Gi",
        },
      },
      spec: { hard: { pods: "6", "requests.memory": "1792Mi" } },
    });
    expect(second?.spec).toEqual({ hard: { pods: "4", "requests.memory": "1280Mi" } });
    expect(others).toEqual([]);
  });

  it("is not written when it is as it should be", async () => {
    const used = { pods: "2", "requests.memory": "1Gi" };
    const [balanced] = await written([quota("oil-a", { hard: { pods: "3", "requests.memory": "1Gi" }, used })]);
    const { annotations } = balanced?.metadata ?? {};
    const hard = hardOf(balanced);
    expect(hard).toEqual({ pods: "10", "requests.memory": "3Gi" });
    expect(await written([quota("oil-a", { hard, used }, { annotations: annotations ?? {}, labels })])).toEqual([]);
  });

  it("gives out a limit that was raised at once, though everybody has half of it in hand", async () => {
    const lower = { "quota.capsule.clastix.io/hard-pods": "6" };
    const quotas = (annotations: Record<string, string>) =>
      ["oil-a", "oil-b"].map((namespace) =>
        quota(namespace, { hard: { pods: "3", "requests.memory": "1536Mi" }, used: none }, { annotations }),
      );
    expect((await written(quotas(lower))).map(hardOf)).toMatchObject([{ pods: "5" }, { pods: "5" }]);
    const same = { "quota.capsule.clastix.io/hard-pods": "10" };
    expect((await written(quotas(same))).map(hardOf)).toMatchObject([{ pods: "3" }, { pods: "3" }]);
  });

  it("lowers first", async () => {
    const manifests = await written([
      quota("oil-a", { hard: none, used: none }),
      quota("oil-b", { hard: { pods: "8", "requests.memory": "1Gi" }, used: none }),
    ]);
    expect(manifests.map(({ metadata }) => metadata.namespace)).toEqual(["oil-b", "oil-a"]);
    expect(manifests.map((manifest) => hardOf(manifest).pods)).toEqual(["5", "2"]);
  });

  it("counts what a namespace on its way out still uses, and gives it nothing", async () => {
    const ending = labelled("oil-b", "oil", { deletionTimestamp: "2026-01-01T00:00:00Z" });
    const [balanced, ...others] = await written([
      ending,
      quota("oil-a", { hard: none, used: none }),
      quota("oil-b", { hard: { pods: "5", "requests.memory": "0" }, used: { pods: "4", "requests.memory": "0" } }),
    ]);
    expect(balanced).toMatchObject({ metadata: { namespace: "oil-a" }, spec: { hard: { pods: "6" } } });
    expect(balanced?.metadata.annotations).toMatchObject({ "quota.capsule.clastix.io/used-pods": "4" });
    expect(others).toEqual([]);
  });

  it("takes a resource back that the tenant no longer names", async () => {
    const [balanced] = await written([quota("oil-a", { hard: { ...none, services: "5" }, used: none })]);
    expect(Object.keys(hardOf(balanced))).toEqual(["pods", "requests.memory"]);
  });
});
