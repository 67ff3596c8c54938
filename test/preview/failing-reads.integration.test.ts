import fc from "fast-check";
import { beforeAll, expect, it } from "vitest";
import { ApiError, KubernetesClient, known, type LiveObject, type Manifest } from "../../providers/kubernetes/client";
import { installKinds } from "../../src/operator/install";
import { ClusterView } from "../../src/preview/cluster-view";
import { preview, selectCandidates } from "../../src/preview/preview";
import type { ObjectPlan } from "../../src/preview/report";
import { CONFIG_MAP, TestCluster } from "../providers/kubernetes/test-cluster";
import { bundle, part } from "./bundle";
import { makeObject, openTestEngine } from "./engine";

/* Whatever read fails during a preview, and how: what was not looked at is not said to be created, deleted or unchanged. */

type Fault = "none" | "error" | "type unknown" | "forbidden";

/** A client of the real API server, of which some reads fail. */
class FailingClient extends KubernetesClient {
  readonly failed: string[] = [];

  constructor(
    config: ConstructorParameters<typeof KubernetesClient>[0],
    private readonly faultOf: (request: string) => Fault,
  ) {
    super(config);
  }

  override send(...[method, path, options = {}]: Parameters<KubernetesClient["send"]>) {
    const request = `${path} ${options.query?.labelSelector ?? ""}`;
    const fault = method === "GET" && path !== "/version" ? this.faultOf(request) : "none";
    if (fault === "none") return super.send(method, path, options);
    this.failed.push(request);
    if (fault === "forbidden") return Promise.reject(new ApiError(403, "Forbidden", `may not get ${path}`));
    if (fault === "type unknown")
      return Promise.reject(new ApiError(404, "NotFound", "the server could not find the requested resource"));
    return Promise.reject(new ApiError(503, "ServiceUnavailable", "the server is overloaded"));
  }
}

const cluster = TestCluster.use();
let stacks: Awaited<ReturnType<typeof openTestEngine>>;
const uids = new Map<string, string>();

beforeAll(async () => {
  await installKinds(cluster.client, [bundle]);
  stacks = await openTestEngine();
  for (const name of ["kept", "gone"]) {
    const { metadata } = await makeObject(stacks.engine, cluster.client, bundle, manifestOf(name));
    uids.set(name, metadata.uid);
  }
  await cluster.client.create(cluster.configMap("adopting", { text: "theirs" }));
  return () => stacks.close();
});

const manifestOf = (name: string): Manifest => ({
  apiVersion: "preview.kindstack.dev/v1",
  kind: "Bundle",
  metadata: { name, namespace: cluster.namespace },
  spec: { parts: [part(name)] },
});

async function look(client: KubernetesClient): Promise<ObjectPlan[]> {
  const sourced = (...names: string[]) => ({
    objects: names.map((name) => ({ file: `${name}.yaml`, manifest: manifestOf(name) as LiveObject })),
    problems: [],
  });
  const [files, before] = [sourced("fresh", "adopting", "kept"), sourced("gone", "kept")];
  const selection = selectCandidates([bundle], "default", files, before);
  const view = await ClusterView.open(client);
  return (await preview({ engine: stacks.engine, cluster: view, refresh: false }, selection)).objects;
}

const wordsOf = ({ action, resources }: ObjectPlan) => [action, ...resources.map(({ operation }) => operation)];
const SURE = new Set(["create", "adopt", "update", "replace", "delete", "release", "orphan", "none"]);

it("reads that fail at random never make a preview sure of what it did not see", async () => {
  const truth = new Map((await look(cluster.client)).map((plan) => [plan.name, wordsOf(plan)]));
  expect(Object.fromEntries(truth)).toEqual({
    fresh: ["create", "create"],
    adopting: ["create", "adopt"],
    kept: ["none"],
    gone: ["delete", "delete"],
  });
  expect(await known(cluster.client.get(CONFIG_MAP, "fresh", cluster.namespace))).toBeUndefined();

  const fault = fc.constantFrom<Fault[]>("none", "none", "none", "error", "type unknown", "forbidden");
  await fc.assert(
    fc.asyncProperty(fc.func(fault), async (faultOf) => {
      const client = new FailingClient(cluster.config(), faultOf);
      const plans = await look(client).finally(() => client.close());
      for (const plan of plans) {
        const concerns = (request: string) =>
          request.includes(`/${plan.name} `) ||
          request.includes(uids.get(plan.name) ?? "\0") ||
          request.startsWith("/apis/preview.kindstack.dev/v1 ");
        const failed = client.failed.filter(concerns);
        const story = JSON.stringify({ failed, plan });
        if (failed.length > 0) expect(SURE.has(plan.action), story).toBe(false);
        else if (SURE.has(plan.action)) expect(wordsOf(plan), story).toEqual(truth.get(plan.name));
        // Of its resources, too: what was looked at is as it is, what was not is told as that.
        const [, ...expected] = truth.get(plan.name) ?? [];
        for (const [index, { operation }] of plan.resources.entries()) {
          expect([expected[index] ?? "unchecked", "unchecked"], story).toContain(operation);
        }
      }
    }),
    { seed: 67, numRuns: 25 },
  );
});
