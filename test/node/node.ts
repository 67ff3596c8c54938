import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import { execa } from "execa";
import { stringify } from "yaml";
import { answersOk } from "../../src/dev/health";
import { layoutOf } from "../../src/dev/layout";
import { startPostgres } from "../../src/dev/postgres";
import { Supervisor, stopRecorded } from "../../src/dev/supervisor";
import { createCgroups } from "./cgroups";
import { type ImageParts, writeParts } from "./image";
import { NodePki } from "./pki";
import { startRegistry } from "./registry";
import type { StepTime } from "./times";
import { pulumiTools } from "./tools";
import { flags, type Start, startWorker, type Worker } from "./worker";

/** What main.ts has prepared. */
export interface NodeInput {
  directory: string;
  cgroup: string;
  /** By the tool's name. */
  binaries: Readonly<Record<string, string>>;
  /** The operator's image. */
  image: string;
  /** How long its steps took. */
  imageTimes: StepTime[];
  /** How many nodes: 1 or 2. */
  nodes: number;
  /** The command line that was built with it. */
  cli: string;
}

/** A running cluster of one node. */
export interface NodeCluster {
  directory: string;
  kubeconfig: string;
  workers: Worker[];
  /** Where the operator's Pods reach PostgreSQL: a name of the cluster's DNS, and what it resolves to. */
  databaseHost: string;
  databaseAddress: string;
  databaseUrl: string;
  imageTimes: StepTime[];
  cli: string;
  helm: string;
  /** The folders of Pulumi's CLI and its plugins, where they are needed. */
  pulumi: string[];
}

const DOMAIN = "cluster.local";
const API_PORT = 6443;
const POSTGRES_PORT = 5432;
const REGISTRY_PORT = 5000;
export const DATABASE_HOST = "db.example.com";

interface Addresses {
  /** Of each node. */
  nodes: [string, string];
  prefix: number;
  /** Of all Pods, and of each node's. */
  cluster: string;
  pods: [string, string];
  podRoute: string;
  services: string;
  apiService: string;
  dns: string;
}
const IPV4: Addresses = {
  nodes: ["10.99.0.11", "10.99.0.12"],
  prefix: 24,
  cluster: "10.244.0.0/16",
  pods: ["10.244.1.0/24", "10.244.2.0/24"],
  podRoute: "0.0.0.0/0",
  services: "10.96.0.0/16",
  apiService: "10.96.0.1",
  dns: "10.96.0.10",
};
const IPV6: Addresses = {
  nodes: ["fd99::11", "fd99::12"],
  prefix: 64,
  cluster: "fd44::/48",
  pods: ["fd44:0:0:1::/64", "fd44:0:0:2::/64"],
  podRoute: "::/0",
  services: "fd96::/112",
  apiService: "fd96::1",
  dns: "fd96::10",
};

let isStopping = false;

/** Ends what {@link startNode} has started, but for containers: they end with their namespace of processes. */
export async function stopNode({ directory }: NodeInput): Promise<void> {
  isStopping = true;
  await stopRecorded(layoutOf(directory), () => {});
}

/** Starts a control plane and a node with everything that a cluster has. */
export async function startNode(input: NodeInput, family: "ipv4" | "ipv6"): Promise<NodeCluster> {
  const { directory, binaries, cgroup } = input;
  const addresses = family === "ipv6" ? IPV6 : IPV4;
  const [address] = addresses.nodes;
  const layout = layoutOf(directory);
  fs.mkdirSync(layout.logs, { recursive: true });
  fs.chmodSync(directory, 0o711);
  const supervisor = new Supervisor(layout, new AbortController().signal);
  void supervisor.failure.then((failure) => !isStopping && console.error(failure.message));
  const start: Start = async (name, port, args, isHealthy, program = name) => {
    const command = binaries[program] ?? program;
    // Nothing of it is kept.
    await supervisor.start({ name, command, args, port, isHealthy, tier: 1, stopSignal: "SIGKILL" });
  };

  await network(addresses);
  createCgroups(cgroup);
  const host = net.isIPv6(address) ? `[${address}]` : address;
  const pki = await NodePki.create(layout.pki, `https://${host}:${API_PORT}`);
  const kubeconfigs = {
    admin: await pki.kubeconfig("admin", { CN: "admin", O: "system:masters" }),
    controllers: await pki.kubeconfig("kcm", { CN: "system:kube-controller-manager" }),
    scheduler: await pki.kubeconfig("scheduler", { CN: "system:kube-scheduler" }),
    proxy: await pki.kubeconfig("proxy", { CN: "system:kube-proxy" }),
  };
  const serving = await pki.apiServer(["127.0.0.1", address, addresses.apiService]);
  const kubeletClient = await pki.serving("kubelet-client", { CN: "kube-apiserver", O: "system:masters" }, []);
  const accounts = await pki.signing("service-accounts");

  await start(
    "etcd",
    2379,
    flags({
      "data-dir": layout.etcd,
      "listen-client-urls": "http://127.0.0.1:2379",
      "advertise-client-urls": "http://127.0.0.1:2379",
      "listen-peer-urls": "http://127.0.0.1:2380",
      "unsafe-no-fsync": true,
      "log-level": "warn",
    }),
    () => answers("http://127.0.0.1:2379/health"),
  );
  const kubectl = (args: string[], stdin?: string) =>
    execa("kubectl", args, { env: { KUBECONFIG: kubeconfigs.admin }, ...(stdin !== undefined && { input: stdin }) });
  const apiServer = flags({
    "advertise-address": address,
    "bind-address": "::",
    "secure-port": API_PORT,
    "etcd-servers": "http://127.0.0.1:2379",
    "tls-cert-file": serving.cert,
    "tls-private-key-file": serving.key,
    "client-ca-file": pki.ca,
    "authorization-mode": "Node,RBAC",
    "enable-admission-plugins": "NodeRestriction",
    "allow-privileged": true,
    "kubelet-preferred-address-types": "InternalIP",
    "kubelet-client-certificate": kubeletClient.cert,
    "kubelet-client-key": kubeletClient.key,
    "service-account-issuer": `https://kubernetes.default.svc.${DOMAIN}`,
    "service-account-key-file": accounts.cert,
    "service-account-signing-key-file": accounts.key,
    "service-cluster-ip-range": addresses.services,
  });
  await start(
    "kube-apiserver",
    API_PORT,
    apiServer,
    async () => (await kubectl(["get", "--raw", "/readyz"])).stdout === "ok",
  );
  const controllers = (kubeconfig: string) => ({
    kubeconfig,
    "authentication-kubeconfig": kubeconfig,
    "authorization-kubeconfig": kubeconfig,
    "bind-address": "127.0.0.1",
    "leader-elect": false,
  });
  const tls = { ca: pki.authority, client: pki.authority };
  await start(
    "kube-controller-manager",
    10257,
    flags({
      ...controllers(kubeconfigs.controllers),
      "use-service-account-credentials": true,
      "service-account-private-key-file": accounts.key,
      "root-ca-file": pki.ca,
      "cluster-signing-cert-file": pki.ca,
      "cluster-signing-key-file": pki.caKey,
      "service-cluster-ip-range": addresses.services,
      "cluster-cidr": addresses.cluster,
      "allocate-node-cidrs": false,
      "tls-cert-file": serving.cert,
      "tls-private-key-file": serving.key,
    }),
    () => answersOk("https://127.0.0.1:10257/healthz", tls),
  );
  await start(
    "kube-scheduler",
    10259,
    flags({
      ...controllers(kubeconfigs.scheduler),
      "tls-cert-file": serving.cert,
      "tls-private-key-file": serving.key,
    }),
    () => answersOk("https://127.0.0.1:10259/healthz", tls),
  );

  mirrors(directory);
  await startRegistry(REGISTRY_PORT, await standInImage(directory));
  fs.writeFileSync(path.join(directory, "resolv.conf"), "nameserver 127.0.0.1\n");
  const workers = await Promise.all(
    addresses.nodes.slice(0, input.nodes).map((address, index) =>
      startWorker(
        {
          directory,
          cgroup,
          name: `node-${index + 1}`,
          index,
          address,
          pods: addresses.pods[index] ?? "",
          podRoute: addresses.podRoute,
          dns: addresses.dns,
          domain: DOMAIN,
          image: input.image,
        },
        { binaries, pki, start },
      ),
    ),
  );
  fs.writeFileSync(
    path.join(directory, "kube-proxy.yaml"),
    stringify(proxyConfiguration(kubeconfigs.proxy, addresses)),
  );
  await start("kube-proxy", 10256, [`--config=${path.join(directory, "kube-proxy.yaml")}`], () =>
    answers("http://127.0.0.1:10249/healthz"),
  );
  fs.writeFileSync(path.join(directory, "Corefile"), corefile(addresses, kubeconfigs.admin));
  await start("coredns", 53, ["-conf", path.join(directory, "Corefile")], () => connects(address, 53));
  await start(
    "kube-router",
    0,
    flags({
      kubeconfig: kubeconfigs.admin,
      "run-firewall": true,
      "run-router": false,
      "run-service-proxy": false,
      "run-loadbalancer": false,
      "hostname-override": "node-1",
      "service-cluster-ip-range": addresses.services,
      "enable-ipv4": family === "ipv4",
      "enable-ipv6": family === "ipv6",
      "health-port": 20244,
      "metrics-port": 0,
    }),
    () => answers("http://127.0.0.1:20244/healthz"),
  );
  const database = await startPostgres(supervisor, binaries.postgres ?? "", () => {});
  forward(POSTGRES_PORT, database.port);
  await kubectl(["apply", "-f", "-"], clusterObjects(addresses, family));
  return {
    directory,
    kubeconfig: kubeconfigs.admin,
    workers,
    databaseHost: DATABASE_HOST,
    databaseAddress: address,
    databaseUrl: `postgres://${database.user}:${database.password}@${DATABASE_HOST}:${POSTGRES_PORT}/${database.database}?sslmode=disable`,
    imageTimes: input.imageTimes,
    cli: input.cli,
    helm: binaries.helm ?? "helm",
    pulumi: pulumiTools.flatMap(({ name }) => binaries[name] ?? []).map((file) => path.dirname(file)),
  };
}

async function network({ nodes, prefix }: Addresses): Promise<void> {
  const steps = [
    "ip link add nodes type bridge",
    ...nodes.map((node) => `ip addr add ${node}/${prefix} dev nodes${net.isIPv6(node) ? " nodad" : ""}`),
    "ip link set nodes up",
    `ip ${net.isIPv6(nodes[0]) ? "-6" : "-4"} route add default dev nodes`,
  ];
  for (const step of steps) {
    const [command = "", ...args] = step.split(" ");
    await execa(command, args);
  }
  const settings = [
    "net/ipv4/ip_forward",
    "net/ipv6/conf/all/forwarding",
    "net/bridge/bridge-nf-call-iptables",
    "net/bridge/bridge-nf-call-ip6tables",
  ];
  for (const setting of settings) fs.writeFileSync(path.join("/proc/sys", setting), "1");
}

/** The machine's BusyBox, which waits: what Pods of other images than the operator's run. */
async function standInImage(directory: string): Promise<ImageParts> {
  const root = path.join(directory, "busybox");
  fs.mkdirSync(path.join(root, "bin"), { recursive: true });
  const { stdout: busybox } = await execa("sh", ["-c", "command -v busybox"]);
  fs.copyFileSync(busybox, path.join(root, "bin/busybox"));
  for (const name of ["sh", "sleep"]) fs.symlinkSync("busybox", path.join(root, "bin", name));
  const wait = "#!/bin/sh\ntrap 'exit 0' TERM INT\nwhile :; do sleep 3600 & wait $!; done\n";
  for (const program of ["wait", "memcached"]) fs.writeFileSync(path.join(root, "bin", program), wait, { mode: 0o755 });
  return writeParts({ directory: root, config: { Entrypoint: ["/bin/wait"], Env: ["PATH=/bin"] } }, directory);
}

/** Everything is pulled from the node's own registry. */
function mirrors(directory: string): void {
  const folder = path.join(directory, "registries/_default");
  fs.mkdirSync(folder, { recursive: true });
  const url = `http://127.0.0.1:${REGISTRY_PORT}`;
  fs.writeFileSync(
    path.join(folder, "hosts.toml"),
    `server = "${url}"\n[host."${url}"]\ncapabilities = ["pull", "resolve"]\n`,
  );
}

function proxyConfiguration(kubeconfig: string, { cluster }: Addresses) {
  return {
    apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
    kind: "KubeProxyConfiguration",
    clientConnection: { kubeconfig },
    mode: "iptables",
    hostnameOverride: "node-1",
    clusterCIDR: cluster,
    conntrack: { maxPerCore: 0, tcpEstablishedTimeout: "0s", tcpCloseWaitTimeout: "0s" },
    metricsBindAddress: "127.0.0.1:10249",
  };
}

function corefile({ nodes: [node] }: Addresses, kubeconfig: string): string {
  return `.:53 {
  bind ${node}
  errors
  hosts {
    ${node} ${DATABASE_HOST}
    fallthrough
  }
  kubernetes ${DOMAIN} in-addr.arpa ip6.arpa {
    kubeconfig ${kubeconfig}
    pods insecure
    fallthrough in-addr.arpa ip6.arpa
  }
  cache 5
}
`;
}

/** The DNS as a Service whose endpoint is on the node, and a class of volumes that an administrator makes. */
function clusterObjects({ nodes: [node], dns }: Addresses, family: "ipv4" | "ipv6"): string {
  const ports = [
    { name: "dns", port: 53, protocol: "UDP" },
    { name: "dns-tcp", port: 53, protocol: "TCP" },
  ];
  const metadata = { name: "kube-dns", namespace: "kube-system" };
  const objects = [
    { apiVersion: "v1", kind: "Service", metadata, spec: { clusterIP: dns, ports } },
    {
      apiVersion: "discovery.k8s.io/v1",
      kind: "EndpointSlice",
      metadata: { ...metadata, labels: { "kubernetes.io/service-name": "kube-dns" } },
      addressType: family === "ipv6" ? "IPv6" : "IPv4",
      ports,
      endpoints: [{ addresses: [node], conditions: { ready: true } }],
    },
    {
      apiVersion: "storage.k8s.io/v1",
      kind: "StorageClass",
      metadata: { name: "local", annotations: { "storageclass.kubernetes.io/is-default-class": "true" } },
      provisioner: "kubernetes.io/no-provisioner",
      volumeBindingMode: "WaitForFirstConsumer",
    },
  ];
  return objects.map((object) => stringify(object)).join("---\n");
}

/** Lets Pods reach what listens on the node's loopback address alone. */
function forward(port: number, to: number): void {
  const server = net.createServer((client) => {
    const upstream = net.connect(to, "127.0.0.1");
    client.on("error", () => upstream.destroy());
    upstream.on("error", () => client.destroy());
    client.pipe(upstream).pipe(client);
  });
  server.listen(port, "::").unref();
}

async function answers(url: string): Promise<boolean> {
  return (await fetch(url)).ok;
}

function connects(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = net.connect(port, host, () => {
      socket.destroy();
      resolve(true);
    });
    socket.on("error", () => resolve(false));
  });
}
