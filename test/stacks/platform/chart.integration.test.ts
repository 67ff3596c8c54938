import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import type { Manifest } from "../../../providers/kubernetes/client";
import { runCommand } from "../../../src/cli/program";
import { packageVersion } from "../../../src/package";
import { resolveBinary } from "../../../src/toolchain/resolve";
import type { PolicyRule } from "../../../stacks/contract/capabilities";
import { objectId } from "../../../stacks/contract/object";
import { withLoadedKinds } from "../../../stacks/platform/kinds";
import { platformManifests } from "../../../stacks/platform/manifests";
import { parseConfiguration } from "../../../stacks/platform/parse-configuration";
import { useDirectory } from "../../directories";
import { testTools } from "../../tools";
import { someValues, valueKeys } from "./chart-values";

const folder = useDirectory();
const chart = path.join(folder, "chart");
/** YAML reads it as a number, unless it is quoted. */
const NAMESPACE = "1e3";
let helm: string;

beforeAll(async () => {
  helm = await resolveBinary(testTools.helm);
  expect(await runCommand(["install", "--chart", chart, "--set", "postgresTables="])).toBe(0);
});

type Values = Readonly<Record<string, unknown>>;

function template(target: string, values: Values, ...options: string[]): string {
  const file = path.join(folder, "given.yaml");
  fs.writeFileSync(file, JSON.stringify(values));
  return execFileSync(helm, ["template", "kindstack", target, "--namespace", NAMESPACE, "--values", file, ...options], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
  });
}

/** What the chart installs, by id, without what is Helm's own in it. */
function rendered(values: Values): Map<string, unknown> {
  return byId(manifestsIn(template(chart, values)));
}

/** As kubectl reads YAML. */
function manifestsIn(text: string): Manifest[] {
  const documents = parseAllDocuments(text, { version: "1.1" }).map((document) => document.toJS() as Manifest | null);
  return documents.filter((manifest) => manifest !== null);
}

/** What `install --print` prints, without the namespace, which is Helm's to make. */
async function printed(values: Values): Promise<Map<string, unknown>> {
  const texts = Object.entries({ postgresTables: "", ...values, namespace: NAMESPACE }).map(([key, value]) => [
    key,
    typeof value === "string" ? value : JSON.stringify(value),
  ]);
  const { configuration, kinds } = withLoadedKinds(parseConfiguration(Object.fromEntries(texts), packageVersion));
  const manifests = await platformManifests(configuration, kinds);
  return byId(manifests.filter(({ kind }) => kind !== "Namespace"));
}

function byId(manifests: readonly Manifest[]): Map<string, unknown> {
  return new Map(
    manifests.map((manifest) => {
      const copy = JSON.parse(JSON.stringify(manifest)) as Manifest & { rules?: PolicyRule[] };
      delete copy.metadata.annotations?.["helm.sh/resource-policy"];
      if (Object.keys(copy.metadata.annotations ?? {}).length === 0) delete copy.metadata.annotations;
      return [objectId(copy), copy.kind === "ClusterRole" ? { ...copy, rules: rightsOf(copy.rules ?? []) } : copy];
    }),
  );
}

/** Each right by itself: rules may be merged or not. */
function rightsOf(rules: readonly PolicyRule[]): string[] {
  const rights = rules.flatMap(({ apiGroups = [""], resources, resourceNames = ["*"], verbs, ...rest }) =>
    apiGroups.flatMap((group) =>
      (resources ?? [JSON.stringify(rest)]).flatMap((resource) =>
        resourceNames.flatMap((name) => verbs.map((verb) => `${verb} ${resource}.${group}/${name}`)),
      ),
    ),
  );
  return [...new Set(rights)].sort();
}

describe("the Helm chart", () => {
  it("has nothing that helm finds fault with", () => {
    expect(execFileSync(helm, ["lint", "--strict", chart], { encoding: "utf8" })).toContain("0 chart(s) failed");
  });

  it("has a value for every key that an installation by Helm may have", () => {
    const { properties } = JSON.parse(fs.readFileSync(path.join(chart, "values.schema.json"), "utf8")) as {
      properties: object;
    };
    expect(Object.keys(properties).sort()).toEqual([...valueKeys, "global", "enabled"].sort());
    const commented = fs.readFileSync(path.join(chart, "values.yaml"), "utf8").replaceAll(/^# (\w+):$/gm, "$1:");
    expect(Object.keys(parse(commented) as object).sort()).toEqual([...valueKeys].sort());
  });

  it("installs what `install --print` prints with the same keys", async () => {
    expect(rendered({})).toEqual(await printed({}));
    await fc.assert(
      fc.asyncProperty(someValues, async (values) => {
        expect(rendered(values)).toEqual(await printed(values));
      }),
      { numRuns: 60, seed: 61 },
    );
  });

  it("has the keys that it was written with as defaults, and their kinds to choose from", async () => {
    const own = path.join(folder, "own");
    const given = ["--set", "kinds=podsets", "--set", "replicas=2", "--set", "backendFromSecret=true"];
    expect(await runCommand(["install", "--chart", own, ...given])).toBe(0);

    const written = { kinds: ["podsets"], replicas: 2, backendFromSecret: true };
    expect(byId(manifestsIn(template(own, {})))).toEqual(await printed(written));
    const others = { kinds: ["memcacheds"] };
    expect(byId(manifestsIn(template(own, others)))).toEqual(await printed({ ...written, ...others }));
  });

  it.each<[string, Values, RegExp]>([
    ["a value that the schema does not allow", { logLevel: "loud" }, /logLevel/],
    ["a value that is none", { namespace: "other" }, /namespace/],
    ["a value that would make a Secret", { passphrase: "p" }, /passphrase/],
    ["replicas that share a volume", { replicas: 2 }, /replicas: 2 need the state in a database or bucket/],
    ["a kind that it does not have", { kinds: ["nothing"] }, /kinds: nothing must be one of memcacheds\.cache/],
    ["a name of two kinds", { kinds: ["tenants"] }, /kinds: tenants must be one of tenants\.capsule.*, tenants\.multi/],
    ["a proxy without Capsule's Tenants", { proxy: true, kinds: ["podsets"] }, /proxy: true needs tenants\.capsule/],
  ])("refuses %s", (_, values, message) => {
    expect(() => rendered(values)).toThrow(message);
  });

  it("keeps what has to outlive it", () => {
    const keptBy = (values: Values) =>
      new Set(
        manifestsIn(template(chart, values)).flatMap(({ kind, metadata: { annotations } }) =>
          annotations?.["helm.sh/resource-policy"] === "keep" ? [kind] : [],
        ),
      );
    const definitions = ["CustomResourceDefinition", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"];
    expect(keptBy({})).toEqual(new Set([...definitions, "PersistentVolumeClaim"]));
    expect(keptBy({ keepState: false })).toEqual(new Set(definitions));
  });

  it("can be what another chart depends on", async () => {
    const umbrella = path.join(folder, "umbrella");
    fs.mkdirSync(umbrella);
    const dependency = {
      name: "kindstack",
      version: "*",
      repository: `file://${chart}`,
      condition: "kindstack.enabled",
    };
    const about = { apiVersion: "v2", name: "umbrella", version: "1.0.0", dependencies: [dependency] };
    fs.writeFileSync(path.join(umbrella, "Chart.yaml"), JSON.stringify(about));
    execFileSync(helm, ["dependency", "build", umbrella], {
      env: { ...process.env, HELM_CACHE_HOME: folder },
      stdio: "pipe",
    });
    const of = (values: Values) => byId(manifestsIn(template(umbrella, values)));

    expect(of({ kindstack: { logLevel: "debug" }, global: { a: 1 } })).toEqual(await printed({ logLevel: "debug" }));
    expect(of({ kindstack: { enabled: true } })).toEqual(await printed({}));
    expect(of({ kindstack: { enabled: false } })).toEqual(new Map());
  });
});
