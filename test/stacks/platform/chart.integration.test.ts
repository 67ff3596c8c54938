import { execFileSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import type { Manifest } from "../../../providers/kubernetes/client";
import { resolveBinary } from "../../../src/toolchain/resolve";
import { objectId } from "../../../stacks/contract/object";
import { helmChart } from "../../../stacks/platform/chart";
import { withLoadedKinds } from "../../../stacks/platform/kinds";
import { platformManifests } from "../../../stacks/platform/manifests";
import { parseConfiguration } from "../../../stacks/platform/parse-configuration";
import { testTools } from "../../tools";

const VERSION = "1.2.3";
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "kindstack-chart-"));
let helm: string;

beforeAll(async () => {
  helm = await resolveBinary(testTools.helm);
});
afterAll(() => fs.rmSync(folder, { recursive: true, force: true }));

async function write(name: string, values: Record<string, string>): Promise<string> {
  const chart = path.join(folder, name);
  fs.mkdirSync(path.join(chart, "templates"), { recursive: true });
  const { configuration, kinds } = withLoadedKinds(parseConfiguration(values, VERSION));
  const files = await helmChart(configuration, kinds, VERSION);
  for (const [file, text] of Object.entries(files)) fs.writeFileSync(path.join(chart, file), text);
  return chart;
}

/** What the chart installs, by id, without what is Helm's own in it. */
function rendered(chart: string, set: Record<string, string> = {}, option = "--set"): Map<string, unknown> {
  const words = Object.entries(set).flatMap(([key, value]) => {
    const isText = option === "--set-json" && !/^[[{]/.test(value);
    return [option, `${key}=${isText ? JSON.stringify(value) : value}`];
  });
  const text = execFileSync(helm, ["template", "kindstack", chart, "--namespace", "ops", ...words], {
    encoding: "utf8",
  });
  const documents = parseAllDocuments(text).map((document) => document.toJS() as Manifest | null);
  return byId(documents.filter((manifest) => manifest !== null));
}

function byId(manifests: readonly Manifest[]): Map<string, unknown> {
  return new Map(
    manifests.map((manifest) => {
      const copy = JSON.parse(JSON.stringify(manifest)) as Manifest;
      delete copy.metadata.annotations?.["helm.sh/resource-policy"];
      if (Object.keys(copy.metadata.annotations ?? {}).length === 0) delete copy.metadata.annotations;
      return [objectId(copy), copy];
    }),
  );
}

/** What `install --print` prints, without the namespace, which is Helm's to make. */
async function printed(values: Record<string, string>): Promise<Map<string, unknown>> {
  const { configuration, kinds } = withLoadedKinds(parseConfiguration({ ...values, namespace: "ops" }, VERSION));
  const manifests = await platformManifests(configuration, kinds);
  return byId(manifests.filter(({ kind }) => kind !== "Namespace"));
}

describe.each([
  ["with a volume", {}],
  [
    "with the state elsewhere and two kinds",
    { backendFromSecret: "true", kinds: '["podsets","tenants.capsule"]', replicas: "2" },
  ],
] as const)("the Helm chart %s", (name, values: Record<string, string>) => {
  let chart: string;
  beforeAll(async () => {
    chart = await write(name.replaceAll(" ", "-"), values);
  });

  it("has nothing that helm finds fault with", () => {
    expect(execFileSync(helm, ["lint", "--strict", chart], { encoding: "utf8" })).toContain("0 chart(s) failed");
  });

  it("installs what `install --print` prints", async () => {
    expect(rendered(chart)).toEqual(await printed(values));
  });

  it("follows its values as `install --print` follows --set", async () => {
    const set = {
      image: "registry.example.com/kindstack:2",
      stateSecret: "other",
      concurrency: "7",
      logLevel: "debug",
      postgresTables: "team-a=app.*",
      serviceMonitor: "true",
      networkPolicy: "false",
      crds: "false",
    };
    expect(rendered(chart, set)).toEqual(await printed({ ...values, ...set }));
  });

  it("takes maps and lists as `install --print` does", async () => {
    const set = {
      resources: '{"requests":{"cpu":"1","memory":"512Mi"},"limits":{"cpu":"2","memory":"2Gi"}}',
      nodeSelector: '{"kubernetes.io/os":"linux"}',
      tolerations: '[{"key":"infra","operator":"Exists","effect":"NoSchedule"}]',
      // Helm merges maps into the default ones, and replaces lists.
      affinity:
        '{"podAntiAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":1,"podAffinityTerm":{"topologyKey":"zone"}}]}}',
      topologySpreadConstraints:
        '[{"maxSkew":1,"topologyKey":"zone","whenUnsatisfiable":"ScheduleAnyway","labelSelector":{"matchLabels":{"a":"b"}}}]',
      labels: '{"team":"platform","app.kubernetes.io/name":"mine"}',
      annotations: '{"example.com/owner":"platform"}',
      podAnnotations: '{"example.com/scrape":"no"}',
      imagePullSecrets: '["registry","other"]',
      priorityClassName: "system-cluster-critical",
    };
    expect(rendered(chart, set, "--set-json")).toEqual(await printed({ ...values, ...set }));
  });

  it("refuses a value that the schema does not allow, and one that is none", () => {
    expect(() => rendered(chart, { logLevel: "loud" })).toThrow();
    expect(() => rendered(chart, { namespace: "other" })).toThrow();
  });

  it("keeps what has to outlive it", () => {
    const kept = fs
      .readdirSync(path.join(chart, "templates"))
      .filter((file) =>
        fs.readFileSync(path.join(chart, "templates", file), "utf8").includes("helm.sh/resource-policy: keep"),
      );
    expect(
      kept.every((file) =>
        /^(customresourcedefinition|persistentvolumeclaim|validatingadmissionpolicy(binding)?)-/.test(file),
      ),
    ).toBe(true);
    expect(kept.length).toBeGreaterThanOrEqual(2);
  });
});
