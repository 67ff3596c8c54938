import fs from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { proxyCommand } from "../../../src/cli/proxy";
import { runCommand } from "../../../src/cli/run";
import { kinds } from "../../../stacks/kinds/index";
import { platformManifests } from "../../../stacks/platform/manifests";
import { parseConfiguration } from "../../../stacks/platform/parse-configuration";

const ROOT = path.resolve(__dirname, "../../..");
const DOCS = path.join(ROOT, "docs");
const pages = [path.join(ROOT, "README.md"), ...fs.readdirSync(DOCS).map((file) => path.join(DOCS, file))];

/** Flags of an operator that runs outside of a cluster, or that an installation has in another form. */
const NOT_INSTALLED = [
  ...["install-crds", "watch", "leader-elect", "no-leader-elect", "lease-namespace", "http-port", "http-host"],
  ...["admission-url", "admission-host"],
  ...["tls-cert-file", "tls-key-file", "client-ca-file"], // the proxy's, which has a Secret and the API server's ConfigMap
];

/** With a value of every key that becomes a flag. */
const VALUES = {
  ...{ kinds: "podsets", concurrency: "1", shards: "2", rollout: "10", mode: "Observe", backendUrl: "s3://state" },
  ...{ authorMayNotApprove: "true", driftInterval: "60", metricsSecret: "a", previewSecret: "b", leaseDuration: "30" },
  ...{ rolloutMaxFailures: "2", updateTimeout: "3600", gracePeriod: "60", engineIdle: "600", relistInterval: "60" },
  ...{ renewDeadline: "20", retryPeriod: "5", admissionClientCa: "api-servers", proxy: "true" },
  ...{ kindTimeout: "30", kindMemory: "512", kindIdle: "60", kindFiles: "/data", kindAddons: "true" },
};

it.each([
  ["operator", runCommand(), "--update-timeout", "--lease-duration"],
  ["proxy", proxyCommand(), "--refuse-group", "--max-connections"],
] as const)("has a key for each flag of the %s that a page names", async (_, command, ...some) => {
  const manifests = await platformManifests(parseConfiguration(VALUES, "1.2.3"), kinds);
  const name = command.name() === "proxy" ? "kindstack-proxy" : "kindstack";
  const deployment = manifests.find(({ kind, metadata }) => kind === "Deployment" && metadata.name === name);
  const installed: string[] = JSON.stringify(deployment).match(/--[a-z-]+/g) ?? [];
  const flags = command.options.map(({ long }) => long ?? "");
  const named = pages
    .filter((page) => page.endsWith(".md"))
    .flatMap((page) => fs.readFileSync(page, "utf8").match(/--[a-z][a-z-]+/g) ?? []);

  expect(installed).toEqual(expect.arrayContaining([...some]));
  // The grace period of the proxy is none of updates.
  const others = command.name() === "proxy" ? ["grace-period"] : [];
  expect(installed).toEqual(expect.arrayContaining(flags.filter((flag) => flag.startsWith("--kind-"))));
  const missing = flags.filter((flag) => named.includes(flag) && !installed.includes(flag));
  expect(missing.filter((flag) => ![...NOT_INSTALLED, ...others].includes(flag.slice(2)))).toEqual([]);
});

interface Deployment {
  spec: { template: { spec: { terminationGracePeriodSeconds: number } } };
}

it("ends Pods later the longer running updates may continue", async () => {
  const secondsWith = async (values: Record<string, string>) => {
    const manifests = await platformManifests(parseConfiguration({ ...VALUES, ...values }, "1.2.3"), kinds);
    const spec = manifests.find(({ kind }) => kind === "Deployment")?.spec as Deployment["spec"];
    return spec.template.spec.terminationGracePeriodSeconds;
  };
  expect(await secondsWith({ gracePeriod: "600" })).toBe((await secondsWith({ gracePeriod: "20" })) + 580);
});
