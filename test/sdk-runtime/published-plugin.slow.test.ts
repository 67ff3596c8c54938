import path from "node:path";
import { type Output, secret } from "@pulumi/pulumi/output";
import { CustomResource, type CustomResourceOptions, ProviderResource } from "@pulumi/pulumi/resource";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { EngineProcesses } from "../../src/automation/engine-processes";
import type { GoEngine } from "../../src/automation/go-engine";
import { resolveBinary } from "../../src/toolchain/resolve";
import { openEngineIn } from "../automation/engine-in";
import { useDirectory } from "../directories";
import { TestCluster } from "../providers/kubernetes/test-cluster";
import { testTools } from "../tools";

/* A plugin that others wrote, in Go: Pulumi's own for Kubernetes, against a real API server. */

const STACK = "settings";
const cluster = TestCluster.use();
const directory = useDirectory();
let processes: EngineProcesses;
let engine: GoEngine;

class Cluster extends ProviderResource {
  constructor(name: string, inputs: { kubeconfig: Output<string> }) {
    super("kubernetes", name, inputs);
  }
}

class ConfigMap extends CustomResource {
  constructor(name: string, inputs: object, options: CustomResourceOptions) {
    super("kubernetes:core/v1:ConfigMap", name, inputs, options);
  }
}

beforeAll(async () => {
  const plugin = await resolveBinary(testTools["pulumi-resource-kubernetes"]);
  const say = () => {};
  ({ processes, engine } = await openEngineIn(directory, {
    timing: { operationsPerProcess: 2 }, // so that the process is kept over successors
    environment: { ...process.env, PATH: `${path.dirname(plugin)}${path.delimiter}${process.env.PATH}` },
    log: { warn: say, error: say },
  }));
  return () => processes.close();
}, 1_800_000);

const program =
  (name: string, data: Record<string, string>, immutable = false) =>
  async () => {
    const provider = new Cluster("settings/cluster", { kubeconfig: secret(cluster.config().exportConfig()) });
    const metadata = { name, namespace: cluster.namespace };
    new ConfigMap("settings/map", { apiVersion: "v1", kind: "ConfigMap", metadata, data, immutable }, { provider });
  };
const up = (...words: Parameters<typeof program>) => engine.up(STACK, program(...words), { sdkRuntime: true });
const dataOf = async (name: string) => (await cluster.find(name)) as { data?: object } | undefined;

describe("Pulumi's plugin for Kubernetes", () => {
  let pid: number | undefined;
  afterAll(async () =>
    expect(await processes.plugins.list()).toMatchObject([{ name: "kubernetes", pid, state: "idle" }]),
  );

  it("creates, and changes in place", async () => {
    expect(await up("first", { color: "red" })).toMatchObject({ failures: [], summary: { result: "succeeded" } });
    pid = (await processes.plugins.list())[0]?.pid;
    expect(await up("first", { color: "blue" })).toMatchObject({ failures: [] });
    expect(await dataOf("first")).toMatchObject({ data: { color: "blue" } });
  });

  it("previews with the same process, and changes nothing", async () => {
    const preview = await engine.preview(STACK, program("second", { color: "blue" }), { sdkRuntime: true });
    expect(preview.failures).toEqual([]);
    expect(JSON.stringify(preview.changes)).toContain("replace");
    expect(await dataOf("second")).toBeUndefined();
  });

  it("finds drift by a refresh, and an update with a refresh repairs it", async () => {
    const manifest = cluster.configMap("first", { color: "green" });
    await cluster.client.apply(manifest, { fieldManager: "kubectl" });
    const [declared, refresh] = [program("first", { color: "blue" }), { sdkRuntime: true, refresh: true }];
    const preview = await engine.preview(STACK, declared, refresh);
    expect(preview).toMatchObject({ failures: [], changes: [{ operation: "update", name: "settings/map" }] });
    const repaired = await engine.up(STACK, declared, refresh);
    expect(repaired).toMatchObject({ failures: [], summary: { resourceChanges: { update: 1 } } });
    expect(await dataOf("first")).toMatchObject({ data: { color: "blue" } });
  });

  it("replaces what cannot be changed, and says why something fails", async () => {
    expect(await up("second", { color: "blue" }, true)).toMatchObject({ failures: [] });
    expect(await dataOf("first")).toBeUndefined();
    const failed = await up("Not_A_Name", { color: "blue" });
    expect(failed.failures).toMatchObject([{ message: expect.stringContaining("Not_A_Name") }]);
    expect(JSON.stringify(failed.failures)).not.toContain("client-key-data");
    expect(await dataOf("second")).toMatchObject({ data: { color: "blue" } });
  });

  it("deletes", async () => {
    expect(await engine.destroy(STACK)).toMatchObject({ failures: [] });
    expect(await dataOf("second")).toBeUndefined();
    expect(processes.counts.successors).toBeGreaterThan(1);
  });
});
