import { goBuild } from "../../src/toolchain/go";
import type { Source, Tool } from "../../src/toolchain/tool";
import { kubernetes, tools } from "../../src/toolchain/tools";
import { testTools } from "../tools";

const CONTAINERD = "2.2.9";
const COREDNS = "1.14.7";
const KUBE_ROUTER = "2.1.0";

const containerd = (program: string, estimatedSeconds: number) =>
  ({
    name: program,
    version: CONTAINERD,
    sources: [
      goBuild({
        module: "tools/containerd",
        package: `github.com/containerd/containerd/v2/cmd/${program}`,
        variables: { "github.com/containerd/containerd/v2/version.Version": `v${CONTAINERD}` },
        tags: "no_btrfs,no_devmapper,no_zfs,urfave_cli_no_docs",
        estimatedSeconds,
      }) as Source,
    ],
  }) satisfies Tool;

/** What makes a node of a machine, besides the control plane. */
export const nodeTools = {
  kubelet: kubernetes("kubelet", 15),
  "kube-proxy": kubernetes("kube-proxy", 5),
  containerd: containerd("containerd", 120),
  "containerd-shim-runc-v2": containerd("containerd-shim-runc-v2", 20),
  ctr: containerd("ctr", 20),
  /** The cluster's DNS, with the plugins that it needs here. */
  coredns: {
    name: "coredns",
    version: COREDNS,
    sources: [goBuild({ module: "tools/coredns", package: ".", estimatedSeconds: 90 })],
  },
  /** Enforces NetworkPolicies; routes and services are left to others. */
  "kube-router": {
    name: "kube-router",
    version: KUBE_ROUTER,
    sources: [
      goBuild({
        module: "tools/kube-router",
        package: "github.com/cloudnativelabs/kube-router/v2/cmd/kube-router",
        estimatedSeconds: 120,
      }),
    ],
  },
} as const satisfies Record<string, Tool>;

/** The CLI and its plugins: only the test of `pulumi up` needs them, and to build them takes minutes. */
export const pulumiTools: readonly Tool[] = [
  tools.pulumi,
  tools["pulumi-language-nodejs"],
  testTools["pulumi-resource-kubernetes"],
];

export type NodeTool = keyof typeof nodeTools;
