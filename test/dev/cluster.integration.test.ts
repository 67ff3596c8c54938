import fs from "node:fs/promises";
import path from "node:path";
import { type Cluster, KubeConfig } from "@kubernetes/client-node";
import { execa } from "execa";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import { KubernetesClient, known, type Manifest } from "../../providers/kubernetes/client";
import {
  type DevCluster,
  DevClusterRunningError,
  devClusterStatus,
  removeDevCluster,
  startDevCluster,
  stopDevCluster,
} from "../../src/dev/cluster";
import { adminClient } from "../../src/dev/control-plane";
import { withClient } from "../../src/dev/postgres";
import { eventually } from "../../src/testing/eventually";
import { controlPlane } from "../control-plane";
import { testDirectory, useDirectory } from "../directories";

const namespace = (metadata: Manifest["metadata"]) => ({ apiVersion: "v1", kind: "Namespace", metadata });

describe("the shared cluster", () => {
  const { kubeconfig, env } = controlPlane();
  let client: KubernetesClient;
  let name: string;

  beforeEach(async () => {
    client = adminClient(kubeconfig);
    name = (await client.create(namespace({ generateName: "dev-" }))).metadata.name;
    // The controller manager makes it; until then the API server admits no Pod.
    const accounts = await client.resourceType("v1", "ServiceAccount");
    await eventually(async () =>
      expect(await known(client.get(accounts, "default", name))).toHaveProperty("metadata.uid"),
    );
  });

  afterEach(async () => {
    await client.delete(await client.resourceType("v1", "Namespace"), name);
    await client.close();
  });

  it("runs a Pod on one of its nodes", async () => {
    const spec = { containers: [{ name: "main", image: "example.com/anything" }] };
    await client.create({ apiVersion: "v1", kind: "Pod", metadata: { name: "one", namespace: name }, spec });

    const type = await client.resourceType("v1", "Pod");
    await eventually(async () => {
      const live = await known(client.get(type, "one", name));
      expect(live).toMatchObject({ spec: { nodeName: expect.stringMatching(/^node-/) }, status: { phase: "Running" } });
    });
  });

  it("refuses anyone who shows no certificate", async () => {
    const config = new KubeConfig();
    config.loadFromFile(kubeconfig);
    config.loadFromClusterAndUser(config.getCurrentCluster() as Cluster, { name: "anonymous" });
    const anonymous = new KubernetesClient(config);

    const refused = anonymous.json("GET", "/api/v1/pods");

    await expect(refused).rejects.toMatchObject({ status: 403, message: expect.stringContaining("system:anonymous") });
    await anonymous.close();
  });

  it("has the table of the samples, for psql with the exported variables", async () => {
    const { stdout } = await execa("psql", ["-Atc", "select count(*) from students"], { env });

    expect(stdout).toMatch(/^\d+$/);
  });
});

describe("a cluster of one's own", () => {
  const dir = useDirectory();
  let cluster: DevCluster;

  afterAll(async () => {
    await stopDevCluster(dir);
    await removeDevCluster(dir);
  });

  async function store(cluster: DevCluster): Promise<void> {
    const client = adminClient(cluster.kubeconfig);
    await client.create(namespace({ name: "kept" }));
    await client.close();
    await withClient(cluster.postgres, (sql) => sql.query("insert into students values ('kept', 'Ada', 36, 'uk')"));
  }

  async function stored(cluster: DevCluster): Promise<{ namespace: boolean; row: boolean }> {
    const client = adminClient(cluster.kubeconfig);
    const found = await known(client.get(await client.resourceType("v1", "Namespace"), "kept"));
    await client.close();
    const rows = await withClient(cluster.postgres, (sql) => sql.query("select from students where id = 'kept'"));
    return { namespace: found !== undefined, row: rows.rowCount === 1 };
  }

  // To start one takes long: each test continues with what the one before has left.

  it("leaves nothing running when its start is interrupted", async () => {
    const interruption = new AbortController();
    const log = (message: string) => {
      if (message.includes("API server")) interruption.abort(new Error("enough"));
    };

    await expect(startDevCluster({ dir, log, signal: interruption.signal })).rejects.toThrow("enough");

    expect(devClusterStatus(dir)).toMatchObject({ state: "stopped", processes: [] });
  });

  it("is started once when two want to at the same time", async () => {
    const results = await Promise.allSettled([startDevCluster({ dir }), startDevCluster({ dir })]);

    const reasons = results.flatMap((result) => (result.status === "rejected" ? [result.reason] : []));
    expect(reasons).toEqual([expect.any(DevClusterRunningError)]);
    expect(devClusterStatus(dir).state).toBe("running");
    cluster = results.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []))[0] as DevCluster;
  });

  it("tells which component ended, and replaces what is left of the cluster at the next start", async () => {
    const victim = devClusterStatus(dir).processes.find(({ name }) => name === "kube-scheduler");
    process.kill(victim?.pid as number, "SIGKILL");

    const failure = await cluster.failure;
    const damaged = devClusterStatus(dir);
    cluster = await startDevCluster({ dir });

    expect(failure.message).toMatch(/^kube-scheduler ended \(SIGKILL\)/);
    expect(damaged.state).toBe("damaged");
    const before = damaged.processes.map(({ pid }) => pid);
    const after = devClusterStatus(dir);
    expect(after.state).toBe("running");
    expect(after.processes.filter(({ pid }) => before.includes(pid))).toEqual([]);
  });

  it("starts again, with its state, after all of its processes were killed", async () => {
    await store(cluster);
    for (const { pid } of devClusterStatus(dir).processes) process.kill(pid, "SIGKILL");
    await cluster.failure;

    cluster = await startDevCluster({ dir });

    expect(await stored(cluster)).toEqual({ namespace: true, row: true });
  });

  it("keeps what it stores, and its ports, when it is stopped", async () => {
    await expect(startDevCluster({ dir })).rejects.toThrow(DevClusterRunningError);
    const ports = () =>
      devClusterStatus(dir)
        .processes.map(({ name, port }) => `${name} ${port}`)
        .sort();
    const before = ports();
    await cluster.stop();
    expect(devClusterStatus(dir).state).toBe("stopped");

    cluster = await startDevCluster({ dir });

    expect(await stored(cluster)).toEqual({ namespace: true, row: true });
    expect(ports()).toEqual(before);
  });

  it("forgets what it stored when it is started afresh", async () => {
    await cluster.stop();

    cluster = await startDevCluster({ dir, fresh: true });

    expect(await stored(cluster)).toEqual({ namespace: false, row: false });
  });
});

it("a cluster takes no directory that holds something else", async () => {
  const dir = testDirectory();
  await fs.writeFile(path.join(dir, "letter.txt"), "dear");

  await expect(startDevCluster({ dir, fresh: true })).rejects.toThrow("neither empty nor");

  expect(await fs.readdir(dir)).toEqual(["letter.txt"]);
});
