import fs from "node:fs";
import path from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../../src/testing/eventually";
import {
  areReady,
  events,
  get,
  install,
  kindstack,
  kubectl,
  logLines,
  NAMESPACE,
  node,
  OPERATOR,
  onlyPod,
  prepareInstallation,
  rolledOut,
  uninstall,
} from "./installation";
import { countRows } from "./load";
import { reportTimes, type StepTime, timed } from "./times";

const ROOT = path.resolve(__dirname, "../..");
const SAMPLES = [
  "tenants.multitenancy.codereliant.io/tenant-sample",
  "tenants.capsule.clastix.io/oil",
  "postgreswriters/sample-student@default",
  "podsets/podset-sample@default",
  "memcacheds/memcached-sample@default",
];
const CLUSTER_SCOPED = [
  ...["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
  ...["validatingadmissionpolicies", "validatingadmissionpolicybindings"],
  ...["clusterroles", "clusterrolebindings", "crds", "namespaces", "priorityclasses", "persistentvolumes"],
];
const times: StepTime[] = [];
let values: string;

beforeAll(async () => {
  reportTimes("The image", node.imageTimes);
  values = await timed(times, "namespace, Secrets, values.yaml", prepareInstallation);
});

describe("the default installation", () => {
  it("is Ready, and so is its first object", async () => {
    await timed(times, "install --check, kubectl apply", () => install(values));
    await timed(times, "kubectl rollout status", rolledOut);
    await timed(times, "the first object: kubectl apply, kubectl wait", async () => {
      await kubectl(["apply", "-f", path.join(ROOT, "stacks/kinds/tenant/sample.yaml")]);
      await areReady(SAMPLES.slice(0, 1));
    });
    reportTimes("With kubectl", times);
  });

  it("starts without a restart, without an Unhealthy event, and logs nothing but JSON", async () => {
    const pod = await onlyPod();
    expect(pod.status.containerStatuses?.map(({ restartCount }) => restartCount)).toEqual([0]);
    expect((await events()).filter(({ reason }) => reason === "Unhealthy")).toEqual([]);
    expect((await logLines()).filter((line) => typeof line === "string")).toEqual([]);
  });

  it("leaves half of the container's memory to what is not Node.js's heap", async () => {
    const heap = 'require("v8").getHeapStatistics().heap_size_limit / 2 ** 20';
    const printed = await kubectl(["exec", "-n", NAMESPACE, "deployment/kindstack", "--", "node", "-p", heap]);
    expect(Number(printed)).toBeGreaterThan(400);
    expect(Number(printed)).toBeLessThan(600);
  });

  it("makes all samples Ready", async () => {
    for (const kind of fs.readdirSync(path.join(ROOT, "stacks/kinds"))) {
      const sample = path.join(ROOT, "stacks/kinds", kind, "sample.yaml");
      if (fs.existsSync(sample)) await kubectl(`apply -f ${sample}`);
    }
    await areReady(SAMPLES);
  });

  it("lets owners make namespaces of their tenants, through the webhook", async () => {
    const create = (user: string, name: string) =>
      kubectl(`create namespace ${name} --as ${user} --as-group capsule.clastix.io`);
    await create("alice", "oil-first");
    await expect(create("mallory", "gas-first")).rejects.toThrow("owns no tenant");
  });

  it("loses nothing when its Pod is killed", async () => {
    const before = await onlyPod();
    await kubectl(`delete pod ${before.metadata.name} -n ${NAMESPACE} --grace-period=0 --force`);
    await kubectl(["apply", "-f", "-"], manifestOf("after-kill"));
    await rolledOut();
    await areReady(["postgreswriters/after-kill@default", ...SAMPLES]);
    expect((await onlyPod()).metadata.uid).not.toBe(before.metadata.uid);
  });

  it("tells how it is", async () => {
    expect(await kindstack(["status"])).toContain("PostgresWriter");
  });

  it("leaves nothing when it is uninstalled", async () => {
    await kubectl("delete namespace oil-first");
    await uninstall(values);
    await eventually(async () => {
      const left = await kubectl(`get ${CLUSTER_SCOPED.join(",")} -o name`);
      expect(left.split("\n").filter((name) => /kindstack|capsule|tenant-sample|codereliant/.test(name))).toEqual([]);
    });
    const pods = await get<{ items: object[] }>(`pods -A -l ${OPERATOR}`);
    expect(pods.items).toEqual([]);
    expect(await countRows()).toBe(0);
  });
});

function manifestOf(name: string): string {
  return JSON.stringify({
    apiVersion: "demo.yash.com/v1",
    kind: "PostgresWriter",
    metadata: { name, namespace: "default" },
    spec: { table: "students", name, age: 20, country: "canada" },
  });
}
