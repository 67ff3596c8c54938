import { pulumiInstaller, vendorDownload } from "./download";
import { goBuild, goModuleDocuments } from "./go";
import type { Source, Tool } from "./tool";

const ETCD = "3.6.10";
const KUBERNETES = "1.36.3";
const KWOK = "0.8.0";
const PULUMI = "3.260.0";
/** The CLI's version and the revision of our own code in `tools/pulumi`. */
const PULUMI_SERVER = `${PULUMI}-2`;
/** The last version of the SDK's Go module that contains the language host. */
const LANGUAGE_NODEJS = "3.50.0";

const platform = process.platform;
const architecture = process.arch === "x64" ? "amd64" : process.arch;

export type ToolName = keyof typeof tools;

/** Every tool that Kindstack runs, its version and where it comes from. */
export const tools = {
  etcd: {
    name: "etcd",
    version: ETCD,
    versionArguments: ["--version"],
    sources: [
      vendorDownload(etcdRelease()),
      goBuild({ module: "tools/etcd", package: "go.etcd.io/etcd/server/v3", estimatedSeconds: 50 }),
    ],
  },
  "kube-apiserver": kubernetes("kube-apiserver", 180),
  "kube-controller-manager": kubernetes("kube-controller-manager", 60),
  "kube-scheduler": kubernetes("kube-scheduler", 10),
  kwok: {
    name: "kwok",
    version: KWOK,
    versionArguments: ["--version"],
    sources: [
      kwokDownload(`kwok-${platform}-${architecture}`),
      goBuild({
        module: "tools/kwok",
        package: "sigs.k8s.io/kwok/cmd/kwok",
        variables: { "sigs.k8s.io/kwok/pkg/consts.Version": `v${KWOK}` },
        estimatedSeconds: 40,
      }),
    ],
  },
  /** How kwok simulates nodes and Pods; the program has no rules of its own. */
  "kwok-stages": {
    name: "kwok-stages",
    version: KWOK,
    file: "stages.yaml",
    sources: [
      kwokDownload("stage-fast.yaml"),
      goModuleDocuments({
        module: "tools/kwok",
        path: "sigs.k8s.io/kwok",
        files: [
          "kustomize/stage/node/fast/node-initialize.yaml",
          "kustomize/stage/node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
          "kustomize/stage/pod/fast/pod-ready.yaml",
          "kustomize/stage/pod/fast/pod-complete.yaml",
          "kustomize/stage/pod/fast/pod-delete.yaml",
        ],
      }),
    ],
  },
  pulumi: {
    name: "pulumi",
    version: PULUMI,
    versionArguments: ["version"],
    sources: [
      pulumiInstaller(),
      goBuild({
        module: "tools/pulumi",
        package: "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi",
        variables: { "github.com/pulumi/pulumi/sdk/v3/go/common/version.Version": `v${PULUMI}` },
        estimatedSeconds: 180,
      }),
    ],
  },
  /** Runs commands of the CLI in one process. */
  "pulumi-server": {
    name: "pulumi-server",
    version: PULUMI_SERVER,
    versionArguments: ["--version"],
    // It needs Linux's /proc.
    sources:
      platform !== "linux"
        ? []
        : [
            goBuild({
              module: "tools/pulumi",
              package: "./server",
              variables: {
                "main.Version": PULUMI_SERVER,
                "github.com/pulumi/pulumi/sdk/v3/go/common/version.Version": `v${PULUMI}`,
              },
              estimatedSeconds: 60,
            }),
          ],
  },
  /** What plain `pulumi up` runs Node.js programs with; the operator does not need it. */
  "pulumi-language-nodejs": {
    name: "pulumi-language-nodejs",
    version: LANGUAGE_NODEJS,
    sources: [
      goBuild({
        module: "tools/language-nodejs",
        package: "github.com/pulumi/pulumi/sdk/v3/nodejs/cmd/pulumi-language-nodejs",
        estimatedSeconds: 30,
      }),
    ],
  },
} as const satisfies Record<string, Tool>;

function etcdRelease() {
  const folder = `etcd-v${ETCD}-${platform}-${architecture}`;
  const release = `https://github.com/etcd-io/etcd/releases/download/v${ETCD}`;
  return {
    url: `${release}/${folder}.${platform === "linux" ? "tar.gz" : "zip"}`,
    checksums: `${release}/SHA256SUMS`,
    member: `${folder}/etcd`,
  };
}

function kubernetes(name: string, estimatedSeconds: number): Tool {
  const url = `https://dl.k8s.io/release/v${KUBERNETES}/bin/linux/${architecture}/${name}`;
  const [major = "", minor = ""] = KUBERNETES.split(".");
  const build = goBuild({
    module: "tools/kubernetes",
    package: `k8s.io/kubernetes/cmd/${name}`,
    variables: {
      "k8s.io/component-base/version.gitVersion": `v${KUBERNETES}`,
      "k8s.io/component-base/version.gitMajor": major,
      "k8s.io/component-base/version.gitMinor": minor,
      "k8s.io/component-base/version.gitTreeState": "clean",
    },
    estimatedSeconds,
  });
  const download = vendorDownload({ url, checksums: `${url}.sha256` });
  return {
    name,
    version: KUBERNETES,
    versionArguments: ["--version"],
    // The control plane is released for Linux only.
    sources: platform === "linux" ? [download, build] : [build],
  };
}

function kwokDownload(asset: string): Source {
  const repository = "kubernetes-sigs/kwok";
  return vendorDownload({
    url: `https://github.com/${repository}/releases/download/v${KWOK}/${asset}`,
    checksums: { repository, tag: `v${KWOK}` },
  });
}
