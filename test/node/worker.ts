import fs from "node:fs";
import path from "node:path";
import { execa } from "execa";
import { stringify } from "yaml";
import { createCgroups } from "./cgroups";
import type { NodePki } from "./pki";

const KUBELET_PORT = 10250;
const KUBELET_HEALTH_PORT = 10248;

/** Starts a program and waits until it is healthy. @param program when it is another one than the name says */
export type Start = (
  name: string,
  port: number,
  args: string[],
  isHealthy: () => Promise<boolean>,
  program?: string,
) => Promise<void>;

/** What runs Pods. All of them share one network namespace, as the machines of a network do. */
export interface WorkerOptions {
  /** Of the cluster. */
  directory: string;
  cgroup: string;
  name: string;
  /** From 0. */
  index: number;
  address: string;
  /** The network of its Pods, and what they reach through it. */
  pods: string;
  podRoute: string;
  dns: string;
  domain: string;
  /** The archive of an image that it has. */
  image: string;
}

export interface Worker {
  name: string;
  cgroup: string;
  /** Of containerd, with its namespace for Kubernetes. */
  ctr: string[];
}

interface Parts {
  /** By the tool's name. */
  binaries: Readonly<Record<string, string>>;
  pki: NodePki;
  start: Start;
}

/** Starts containerd and kubelet. */
export async function startWorker(options: WorkerOptions, { binaries, pki, start }: Parts): Promise<Worker> {
  const { name, index } = options;
  const directory = path.join(options.directory, name);
  fs.mkdirSync(path.join(directory, "cni"), { recursive: true });
  const socket = `/run/${name}.sock`;
  createCgroups(cgroupOf(options));
  const ctr = [binaries.ctr ?? "ctr", "--address", socket, "--namespace", "k8s.io"];
  const [command = "", ...args] = ctr;

  const file = (base: string, text: string) => {
    const target = path.join(directory, base);
    fs.writeFileSync(target, text);
    return target;
  };
  const shim = binaries["containerd-shim-runc-v2"] ?? "";
  const containerd = file("containerd.toml", containerdConfiguration(options, directory, socket, shim));
  file("cni/10-bridge.conflist", JSON.stringify(podNetwork(options, directory)));
  const answers = async () => (await execa(command, [...args, "version"])).exitCode === 0;
  await start(`containerd-${name}`, 0, ["--config", containerd], answers, "containerd");
  await execa(command, [...args, "images", "import", options.image]);

  const subject = { CN: `system:node:${name}`, O: "system:nodes" };
  const credentials = await pki.serving(name, subject, [name, options.address]);
  const kubeconfig = await pki.kubeconfig(name, subject);
  const kubelet = file(
    "kubelet.yaml",
    stringify(kubeletConfiguration(options, directory, socket, pki.ca, credentials)),
  );
  const isReady = async () => {
    const wait = ["wait", "--for=condition=Ready", `node/${name}`, "--timeout=1s"];
    return (await execa("kubectl", wait, { env: { KUBECONFIG: pki.kubeconfigOf("admin") } })).exitCode === 0;
  };
  const kubeletFlags = flags({
    config: kubelet,
    kubeconfig,
    "root-dir": path.join(directory, "kubelet"),
    "hostname-override": name,
    "node-ip": options.address,
  });
  await start(`kubelet-${name}`, KUBELET_PORT + 100 * index, kubeletFlags, isReady, "kubelet");
  return { name, ctr, cgroup: cgroupOf(options) };
}

function cgroupOf({ cgroup, name }: Pick<WorkerOptions, "cgroup" | "name">): string {
  return `${cgroup}/${name}`;
}

export function flags(values: Record<string, string | number | boolean>): string[] {
  return Object.entries(values).map(([name, value]) => `--${name}=${value}`);
}

function containerdConfiguration(
  { directory: cluster }: WorkerOptions,
  directory: string,
  socket: string,
  shim: string,
) {
  return `version = 3
root = "${directory}/containerd"
state = "/run/containerd-${path.basename(directory)}"
[grpc]
address = "${socket}"
[plugins.'io.containerd.nri.v1.nri']
disable = true
[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = "registry.k8s.io/pause:3.10"
[plugins.'io.containerd.cri.v1.images'.registry]
config_path = "${cluster}/registries"
[plugins.'io.containerd.cri.v1.runtime']
restrict_oom_score_adj = true
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
runtime_path = "${shim}"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
BinaryName = "runc"
SystemdCgroup = false
[plugins.'io.containerd.cri.v1.runtime'.cni]
bin_dirs = ["/usr/lib/cni"]
conf_dir = "${directory}/cni"
`;
}

function podNetwork({ name, index, pods, podRoute }: WorkerOptions, directory: string) {
  const bridge = {
    type: "bridge",
    bridge: `cni${index}`,
    isGateway: true,
    ipMasq: true,
    hairpinMode: true,
    ipam: {
      type: "host-local",
      dataDir: path.join(directory, "ipam"),
      ranges: [[{ subnet: pods }]],
      routes: [{ dst: podRoute }],
    },
  };
  const plugins = [bridge, { type: "portmap", capabilities: { portMappings: true } }];
  return { cniVersion: "1.0.0", name: `pods-${name}`, plugins };
}

function kubeletConfiguration(
  { directory: cluster, cgroup, name, index, address, dns, domain }: WorkerOptions,
  directory: string,
  socket: string,
  ca: string,
  { cert, key }: { cert: string; key: string },
) {
  return {
    apiVersion: "kubelet.config.k8s.io/v1beta1",
    kind: "KubeletConfiguration",
    authentication: { anonymous: { enabled: false }, webhook: { enabled: true }, x509: { clientCAFile: ca } },
    authorization: { mode: "Webhook" },
    tlsCertFile: cert,
    tlsPrivateKeyFile: key,
    containerRuntimeEndpoint: `unix://${socket}`,
    cgroupDriver: "cgroupfs",
    cgroupRoot: `/${cgroupOf({ cgroup, name })}`,
    cgroupsPerQOS: true,
    enforceNodeAllocatable: [],
    failCgroupV1: false,
    failSwapOn: false,
    clusterDNS: [dns],
    clusterDomain: domain,
    resolvConf: path.join(cluster, "resolv.conf"),
    address,
    port: KUBELET_PORT + 100 * index,
    healthzPort: KUBELET_HEALTH_PORT + 100 * index,
    // The machine's disk may be as full as it likes.
    evictionHard: { "memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%" },
    imageGCHighThresholdPercent: 100,
    imageGCLowThresholdPercent: 99,
    podLogsDir: path.join(directory, "pod-logs"),
    volumePluginDir: path.join(directory, "volume-plugins"),
  };
}
