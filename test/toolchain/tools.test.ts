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
  ["etcd", "etcd", "go.etcd.io/etcd/server/v3"],
  ["kube-apiserver", "kubernetes", "k8s.io/kubernetes"],
  ["kube-controller-manager", "kubernetes", "k8s.io/kubernetes"],
  ["kube-scheduler", "kubernetes", "k8s.io/kubernetes"],
  ["kwok", "kwok", "sigs.k8s.io/kwok"],
  ["kstatus", "kstatus", "sigs.k8s.io/cli-utils"],
  ["versitygw", "versitygw", "github.com/versity/versitygw"],
  ["fake-gcs-server", "fake-gcs-server", "github.com/fsouza/fake-gcs-server"],
  ["pulumi", "pulumi", "github.com/pulumi/pulumi/pkg/v3"],
  ["pulumi-language-nodejs", "language-nodejs", "github.com/pulumi/pulumi/sdk/v3"],
] as const;

describe("the table of tools", () => {
  it.each(requirements)("builds %s, in tools/%s, of the version that it looks for", (name, folder, module) => {
    const goMod = fs.readFileSync(path.join(packageRoot, "tools", folder, "go.mod"), "utf8");

    expect(goMod).toMatch(new RegExp(`^(require |\\t)${module} v${tools[name].version}$`, "m"));
  });

  it("builds promtool of the version that it looks for, whose Go module counts 3.13.5 as 0.313.5", () => {
    const goMod = fs.readFileSync(path.join(packageRoot, "tools/prometheus/go.mod"), "utf8");
    const [major, minor, patch] = tools.promtool.version.split(".");

    expect(goMod).toContain(`require github.com/prometheus/prometheus v0.${major}${minor}.${patch}\n`);
  });

  it("has the Pulumi CLI of the SDK's version", () => {
    const sdk = JSON.parse(
      fs.readFileSync(path.join(packageRoot, "node_modules/@pulumi/pulumi/package.json"), "utf8"),
    ) as { version: string };

    expect(tools.pulumi.version).toBe(sdk.version);
  });

  it("has another revision of the engine whenever its sources have changed", () => {
    const digest = createHash("sha256");
    const sources = filesUnder(path.join(packageRoot, "tools/engine")).filter((file) => !file.endsWith("_test.go"));
    for (const file of sources.sort()) digest.update(fs.readFileSync(file));

    expect([tools.engine.version, digest.digest("hex").slice(0, 16)]).toEqual(["3.260.0-60", "ca9fad91d7c146cf"]);
  });
});
