import { describe, expect, it } from "vitest";
import { ApiError, type KubernetesClient, type ObjectType } from "../../providers/kubernetes/client";
import { ClusterView } from "../../src/preview/cluster-view";
import { inspectStacks } from "../../src/preview/inspect";
import { kinds } from "../../stacks/kinds/index";
import { stub } from "../stub";

const client = stub<KubernetesClient>({
  json: async <T>() => ({}) as T,
  find: async () => ({ outcome: "absent" }),
  async list({ kind }: ObjectType) {
    if (kind !== "Tenant") throw new ApiError(404, "UnknownKind", `the server has no ${kind}`);
    return { items: [], resourceVersion: "1" };
  },
});
const inspection = { kinds, open: async () => ({ engine: {} as never, cluster: await ClusterView.open(client) }) };

describe("a cluster that serves only some of the kinds", () => {
  const nothing = { objects: [], problems: [] };

  it("has no objects of the others, where all are compared or pruned", async () => {
    const diff = await inspectStacks(inspection, "/v1/diff", { refresh: false });
    expect(diff.objects).toEqual([]);

    const request = { manifests: nothing, namespace: "default", refresh: false, prune: { selector: "team=a" } };
    const preview = await inspectStacks(inspection, "/v1/preview", request);
    expect(preview.objects).toEqual([]);
  });

  it("is told of by name where one of the others is asked for", async () => {
    const diff = inspectStacks(inspection, "/v1/diff", { kind: "podsets", refresh: false });
    await expect(diff).rejects.toThrow("the server has no PodSet");
  });
});
