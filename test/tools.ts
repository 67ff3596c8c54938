import { vendorDownload } from "../src/toolchain/download";
import { goBuild } from "../src/toolchain/go";
import type { Tool } from "../src/toolchain/tool";
import { debianPackage } from "./debian-package";

const PROMETHEUS = "3.13.5";
const HELM = "3.22.0";
const CLI_UTILS = "0.37.2";
/** The newest that Go 1.26 builds. */
const FLUX_SSA = "0.78.0";
const APIMACHINERY = "0.36.3";
/** The newest that the Go module proxy has. */
const PULUMI_KUBERNETES = "4.0.0-20260115033456-f47bc2d6f199";
const VERSITYGW = "1.8.0";
const FAKE_GCS_SERVER = "1.56.1";

const platform = process.platform;
const architecture = process.arch === "x64" ? "amd64" : process.arch;

/** The tools that tests need and Kindstack does not. */
export const testTools = {
  /** Checks and evaluates the alerting rules. */
  promtool: {
    name: "promtool",
    version: PROMETHEUS,
    versionArguments: ["--version"],
    sources: [
      vendorDownload(prometheusRelease()),
      goBuild({
        module: "tools/prometheus",
        package: "github.com/prometheus/prometheus/cmd/promtool",
        variables: { "github.com/prometheus/common/version.Version": PROMETHEUS },
        tags: "remove_all_sd", // clients of all clouds
        estimatedSeconds: 120,
      }),
    ],
  },
  /** Checks and renders the Helm chart. */
  helm: {
    name: "helm",
    version: HELM,
    versionArguments: ["version", "--short"],
    sources: [
      vendorDownload(helmRelease()),
      goBuild({
        module: "tools/helm",
        package: "helm.sh/helm/v3/cmd/helm",
        variables: { "helm.sh/helm/v3/internal/version.version": `v${HELM}` },
        estimatedSeconds: 60,
      }),
    ],
  },
  /** Says which objects kubectl reads in a file. */
  "kubectl-read": {
    name: "kubectl-read",
    version: APIMACHINERY,
    versionArguments: ["--version"],
    sources: [
      goBuild({
        module: "tools/kubernetes",
        package: "./kubectl-read",
        variables: { "main.Version": APIMACHINERY },
        estimatedSeconds: 2,
      }),
    ],
  },
  /** Says what Flux and cli-utils make of an object. */
  kstatus: {
    name: "kstatus",
    version: CLI_UTILS,
    versionArguments: ["--version"],
    sources: [
      goBuild({
        module: "tools/kubernetes",
        package: "./kstatus",
        variables: { "main.Version": CLI_UTILS },
        estimatedSeconds: 2,
      }),
    ],
  },
  /** Says which objects Flux takes for different from their manifests. */
  "flux-diff": {
    name: "flux-diff",
    version: FLUX_SSA,
    versionArguments: ["--version"],
    sources: [
      goBuild({
        module: "tools/gitops",
        package: "./flux-diff",
        variables: { "main.Version": FLUX_SSA },
        estimatedSeconds: 120,
      }),
    ],
  },
  /** A pooler before PostgreSQL. It is the distribution's, of whichever version that has. */
  pgbouncer: {
    name: "pgbouncer",
    version: "distribution",
    sources: [
      debianPackage({ package: "pgbouncer", program: "usr/sbin/pgbouncer", dependencies: /^lib(c-ares|cares|event)/ }),
    ],
    remedy: "Run `sudo apt-get update && apt-get download pgbouncer` to see what fails",
  },
  /** All programs of PostgreSQL, as `postgresql pg_dump …`: those that `dev` has are a server's alone. */
  postgresql: {
    name: "postgresql",
    version: "distribution",
    sources: [
      debianPackage({
        package: "postgresql",
        program: "usr/lib/postgresql/*/bin/$1",
        dependencies: /^(postgresql(-client)?-[0-9]+|libpq5|libicu[0-9]+|libxml2|libldap)/,
      }),
    ],
    remedy: "Run `sudo apt-get update && apt-get download postgresql` to see what fails",
  },
  /** A resource plugin that others wrote. */
  "pulumi-resource-kubernetes": {
    name: "pulumi-resource-kubernetes",
    version: PULUMI_KUBERNETES,
    sources: [
      goBuild({
        module: "tools/pulumi-kubernetes",
        package: ".",
        variables: { "main.Version": PULUMI_KUBERNETES },
        estimatedSeconds: 400,
      }),
    ],
  },
  /** An S3 server in front of a folder. */
  versitygw: {
    name: "versitygw",
    version: VERSITYGW,
    versionArguments: ["--version"],
    sources: [
      goBuild({
        module: "tools/versitygw",
        package: "github.com/versity/versitygw/cmd/versitygw",
        variables: { "main.Version": VERSITYGW },
        estimatedSeconds: 90,
      }),
    ],
  },
  /** A server of Google Cloud Storage in front of a folder. It cannot tell its version. */
  "fake-gcs-server": {
    name: "fake-gcs-server",
    version: FAKE_GCS_SERVER,
    sources: [
      goBuild({
        module: "tools/fake-gcs-server",
        package: "github.com/fsouza/fake-gcs-server",
        estimatedSeconds: 60,
      }),
    ],
  },
} as const satisfies Record<string, Tool>;

function prometheusRelease() {
  const folder = `prometheus-${PROMETHEUS}.${platform}-${architecture}`;
  const release = `https://github.com/prometheus/prometheus/releases/download/v${PROMETHEUS}`;
  return {
    url: `${release}/${folder}.tar.gz`,
    checksums: `${release}/sha256sums.txt`,
    member: `${folder}/promtool`,
  };
}

function helmRelease() {
  const url = `https://get.helm.sh/helm-v${HELM}-${platform}-${architecture}.tar.gz`;
  return {
    url,
    checksums: `${url}.sha256sum`,
    member: `${platform}-${architecture}/helm`,
  };
}
