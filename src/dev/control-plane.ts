import fs from "node:fs";
import path from "node:path";
import pRetry from "p-retry";
import { KubernetesClient, known, type LiveObject } from "../../providers/kubernetes/client";
import { loadKubeconfig } from "../../providers/kubernetes/kubeconfig";
import { findCondition } from "../../stacks/contract/condition";
import { statusOf } from "../../stacks/contract/kind";
import { apiServerFlags, controllerFlags, controllerManagerFlags, etcdFlags, type Flags } from "./flags";
import { answersOk } from "./health";
import { type Credential, KWOK_USER, kubeconfigOf, type Pki, preparePki } from "./pki";
import { portOf } from "./ports";
import type { Component, Log, Supervisor } from "./supervisor";

const POD_RANGE = "10.128.0.0/16";
const NODE_ADDRESS = "10.64.0.1";
const FAKE_NODE_ANNOTATION = "kwok.x-k8s.io/node";
/** Of what is applied to the development cluster. */
export const FIELD_MANAGER = "kindstack-dev";
const USABLE_TIMEOUT_MS = 60_000;

/** What serves objects, by the names of the programs. */
export const API_SERVER_TOOLS = ["etcd", "kube-apiserver"] as const;
/** What acts on them: controllers, the scheduler, and kwok with its rules for simulated Pods and nodes. */
export const CONTROLLER_TOOLS = ["kube-controller-manager", "kube-scheduler", "kwok", "kwok-stages"] as const;
type ApiServerTool = (typeof API_SERVER_TOOLS)[number];
type ControllerTool = (typeof CONTROLLER_TOOLS)[number];

/** Starts etcd and the API server, and writes the kubeconfig. */
export async function startApiServer(
  supervisor: Supervisor,
  binaries: Readonly<Record<ApiServerTool, string>>,
  log: Log,
): Promise<number> {
  const { layout } = supervisor;
  const pki = await preparePki(layout.pki);
  log("starting etcd");
  const etcdPort = await portOf(layout, "etcd");
  const etcd = componentOf({
    ...{ name: "etcd", command: binaries.etcd, tier: 1, port: etcdPort, healthPath: "/health" },
    tls: { ca: pki.etcdCa, client: pki.apiServerEtcdClient },
    flags: etcdFlags(layout, pki, etcdPort, await portOf(layout, "etcd-peer")),
  });
  await supervisor.start(etcd);

  log("starting the API server");
  const [name, apiServerPort] = ["kube-apiserver", await portOf(layout, "kube-apiserver")] as const;
  const apiServer = componentOf({
    ...{ name, command: binaries[name], tier: 2, port: apiServerPort, healthPath: "/readyz" },
    tls: { ca: pki.ca, client: pki.admin },
    flags: apiServerFlags(pki, apiServerPort, etcdPort),
  });
  await supervisor.start(apiServer);
  writeKubeconfig(layout.kubeconfig, apiServerPort, pki, pki.admin);
  return apiServerPort;
}

/** Starts the controllers and the scheduler, and waits until Pods can be created on two fake nodes. */
export async function startControllers(
  supervisor: Supervisor,
  apiServerPort: number,
  binaries: Readonly<Record<ControllerTool, string>>,
  log: Log,
): Promise<void> {
  const { layout, signal } = supervisor;
  const pki = await preparePki(layout.pki);
  log("starting the controllers, the scheduler and two nodes");
  const startClient = async (
    name: ControllerTool,
    user: Credential,
    flagsOf: (port: number, kubeconfig: string) => Flags,
  ) => {
    const kubeconfig = path.join(layout.pki, `${name}.kubeconfig`);
    writeKubeconfig(kubeconfig, apiServerPort, pki, user);
    const port = await portOf(layout, name);
    const flags = {
      kubeconfig,
      "tls-cert-file": pki.serving.certificateFile,
      "tls-private-key-file": pki.serving.keyFile,
      ...flagsOf(port, kubeconfig),
    };
    const tls = { ca: pki.ca, client: pki.admin };
    await supervisor.start(
      componentOf({ name, command: binaries[name], tier: 3, port, healthPath: "/healthz", flags, tls }),
    );
  };
  await using client = adminClient(layout.kubeconfig);
  for (const manifest of KWOK_ROLE) await client.apply(manifest, { fieldManager: FIELD_MANAGER });
  const started = [
    startClient("kube-controller-manager", pki.controllerManager, (port, kubeconfig) =>
      controllerManagerFlags(pki, port, kubeconfig),
    ),
    startClient("kube-scheduler", pki.scheduler, controllerFlags),
    startClient("kwok", pki.kwok, (port) => ({
      config: binaries["kwok-stages"],
      "manage-all-nodes": "false",
      "manage-nodes-with-annotation-selector": `${FAKE_NODE_ANNOTATION}=fake`,
      "node-lease-duration-seconds": "40",
      "node-ip": NODE_ADDRESS,
      cidr: POD_RANGE,
      "server-address": `127.0.0.1:${port}`,
    })),
  ];
  await Promise.allSettled(started); // when one fails, the others must have settled before they are stopped
  await Promise.all(started);
  for (const node of NODES) await client.apply(node, { fieldManager: FIELD_MANAGER });
  await untilUsable(client, signal);
}

function writeKubeconfig(file: string, apiServerPort: number, pki: Pki, user: Credential): void {
  const config = kubeconfigOf(`https://127.0.0.1:${apiServerPort}`, pki.ca, user);
  fs.writeFileSync(file, config.exportConfig(), { mode: 0o600 });
}

interface Program extends Pick<Component, "name" | "command" | "tier" | "port"> {
  healthPath: string;
  flags: Flags;
  tls: Parameters<typeof answersOk>[1];
}

function componentOf({ healthPath, flags, tls, ...program }: Program): Component {
  return {
    ...program,
    args: Object.entries(flags).map(([flag, value]) => `--${flag}=${value}`),
    isHealthy: () => answersOk(`https://127.0.0.1:${program.port}${healthPath}`, tls),
  };
}

/** What kwok needs: the API server has roles for its own components only. */
const KWOK_ROLE = [
  {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRole",
    metadata: { name: KWOK_USER },
    rules: [
      { apiGroups: [""], resources: ["nodes"], verbs: ["get", "list", "watch", "patch", "update"] },
      { apiGroups: [""], resources: ["nodes/status", "pods/status"], verbs: ["patch", "update"] },
      { apiGroups: [""], resources: ["pods"], verbs: ["get", "list", "watch", "patch", "update", "delete"] },
      { apiGroups: ["", "events.k8s.io"], resources: ["events"], verbs: ["create", "patch", "update"] },
      {
        apiGroups: ["coordination.k8s.io"],
        resources: ["leases"],
        verbs: ["get", "list", "watch", "create", "patch", "update", "delete"],
      },
    ],
  },
  {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRoleBinding",
    metadata: { name: KWOK_USER },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: KWOK_USER },
    subjects: [{ apiGroup: "rbac.authorization.k8s.io", kind: "User", name: KWOK_USER }],
  },
];

const NODES = ["node-1", "node-2"].map((name) => ({
  apiVersion: "v1",
  kind: "Node",
  metadata: {
    name,
    annotations: { [FAKE_NODE_ANNOTATION]: "fake" },
    labels: { "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", type: "kwok" },
  },
}));

async function untilUsable(client: KubernetesClient, signal: AbortSignal): Promise<void> {
  const check = async () => {
    const nodes = await Promise.all(NODES.map((node) => known(client.find(node))));
    const account = await known(client.get({ apiVersion: "v1", kind: "ServiceAccount" }, "default", "default"));
    if (account !== undefined && nodes.every(isReadyNode)) return;
    throw new Error(
      "the nodes are not Ready, or the namespace default has no service account; see the logs of kwok and kube-controller-manager",
    );
  };
  const retries = Number.POSITIVE_INFINITY;
  await pRetry(check, { retries, factor: 1, minTimeout: 100, maxRetryTime: USABLE_TIMEOUT_MS, signal });
}

function isReadyNode(node: LiveObject | undefined): boolean {
  if (node === undefined) return false;
  const { taints = [] } = node.spec as { taints?: unknown[] };
  return findCondition(statusOf(node).conditions, "Ready")?.status === "True" && taints.length === 0;
}

/** A client with the rights of the cluster's administrator. */
export function adminClient(kubeconfig: string): KubernetesClient {
  return new KubernetesClient(loadKubeconfig(kubeconfig));
}
