import { createHash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { packageRoot } from "../../src/package";
import { tools as productionTools } from "../../src/toolchain/tools";
import { filesUnder } from "../files";
import { testTools } from "../tools";

const tools = { ...productionTools, ...testTools };

const requirements = [
  ["etcd", "kubernetes", "go.etcd.io/etcd/server/v3"],
  ["kube-apiserver", "kubernetes", "k8s.io/kubernetes"],
  ["kube-controller-manager", "kubernetes", "k8s.io/kubernetes"],
  ["kube-scheduler", "kubernetes", "k8s.io/kubernetes"],
  ["kwok", "kubernetes", "sigs.k8s.io/kwok"],
  ["kstatus", "kubernetes", "sigs.k8s.io/cli-utils"],
  ["kubectl-read", "kubernetes", "k8s.io/apimachinery"],
  ["flux-diff", "gitops", "github.com/fluxcd/pkg/ssa"],
  ["versitygw", "versitygw", "github.com/versity/versitygw"],
  ["fake-gcs-server", "fake-gcs-server", "github.com/fsouza/fake-gcs-server"],
  ["pulumi", "pulumi", "github.com/pulumi/pulumi/pkg/v3"],
  ["pulumi-language-nodejs", "language-nodejs", "github.com/pulumi/pulumi/sdk/v3"],
] as const;

const goModOf = (folder: string) => fs.readFileSync(path.join(packageRoot, "tools", folder, "go.mod"), "utf8");

/** The version of each module that a go.mod in `tools/` names. */
const requiredBy = (folder: string) =>
  new Map(
    [...goModOf(folder).matchAll(/^(?:require |\t)(\S+) (v\S+)/gm)].map(([, module, version]) => [module, version]),
  );

describe("the table of tools", () => {
  it.each(requirements)("builds %s, in tools/%s, of the version that it looks for", (name, folder, module) => {
    expect(requiredBy(folder).get(module)).toBe(`v${tools[name].version}`);
  });

  it("has each of Kubernetes' own modules in one version, which k8s.io/kubernetes does not ask for", () => {
    const required = [...requiredBy("kubernetes")].filter(([module]) => module?.startsWith("k8s.io/"));
    const versions = required.flatMap(([, version]) => version?.match(/^v0\.\d+\.\d+$/) ?? []);

    expect(versions.length).toBeGreaterThan(20);
    expect(new Set(versions)).toEqual(new Set([tools["kube-apiserver"].version.replace(/^1/, "v0")]));
  });

  it.each([
    "google.golang.org/grpc",
    "google.golang.org/protobuf",
    "google.golang.org/genproto/googleapis/rpc",
    "golang.org/x/net",
    "golang.org/x/sys",
    "golang.org/x/text",
    "github.com/felixge/httpsnoop",
    "github.com/go-logr/logr",
  ])("has one version of %s in the engine and the control plane, so that a first start compiles it once", (module) => {
    const version = requiredBy("engine").get(module);

    expect(version).toBeDefined();
    expect(requiredBy("kubernetes").get(module)).toBe(version);
  });

  it("builds promtool of the version that it looks for, whose Go module counts 3.13.5 as 0.313.5", () => {
    const [major, minor, patch] = tools.promtool.version.split(".");

    expect(requiredBy("prometheus").get("github.com/prometheus/prometheus")).toBe(`v0.${major}${minor}.${patch}`);
  });

  it.each(["pkg", "sdk"])("builds the engine with Pulumi's module %s of the engine's version", (module) => {
    const [version] = tools.engine.version.split("-");

    expect(requiredBy("engine").get(`github.com/pulumi/pulumi/${module}/v3`)).toBe(`v${version}`);
  });

  it("has another revision of the engine whenever its sources have changed", () => {
    const digest = createHash("sha256");
    const sources = filesUnder(path.join(packageRoot, "tools/engine")).filter((file) => !file.endsWith("_test.go"));
    for (const file of sources.sort()) digest.update(fs.readFileSync(file));

    expect([tools.engine.version, digest.digest("hex").slice(0, 16)]).toEqual(["3.276.0-181", "9aad9935f806956b"]);
  });
});
