import path from "node:path";
import type { HealthProbe } from "./health";
import type { Layout } from "./layout";
import { KWOK_USER, type Pki } from "./pki";
import type { Component } from "./supervisor";

/** The first address of the services' range: that of the service `kubernetes`. */
export const API_SERVER_SERVICE_ADDRESS = "10.0.0.1";
const SERVICE_RANGE = "10.0.0.0/24";
const POD_RANGE = "10.128.0.0/16";
const NODE_ADDRESS = "10.64.0.1";

/** The annotation of the nodes that kwok pretends to run. */
const FAKE_NODE_ANNOTATION = { "kwok.x-k8s.io/node": "fake" } as const;

/** What the components of one control plane share. Their arguments are kubeadm's, but bound to 127.0.0.1. */
interface ControlPlane {
  layout: Layout;
  pki: Pki;
}

const STOP = { stopSignal: "SIGTERM", stopSeconds: 10 } as const;

export function etcd(
  { layout, pki }: ControlPlane,
  command: string,
  ports: { client: number; peer: number },
  probe: HealthProbe,
): Component {
  const [clientUrl, peerUrl] = [`https://127.0.0.1:${ports.client}`, `https://127.0.0.1:${ports.peer}`];
  return {
    name: "etcd",
    command,
    cwd: layout.directory,
    port: ports.client,
    tier: 1,
    ...STOP,
    startSeconds: 30,
    isHealthy: () => probe.isOk(ports.client, "/health"),
    args: flags({
      name: "dev",
      "data-dir": layout.etcd,
      "listen-client-urls": clientUrl,
      "advertise-client-urls": clientUrl,
      "listen-peer-urls": peerUrl,
      "initial-advertise-peer-urls": peerUrl,
      "initial-cluster": `dev=${peerUrl}`,
      "cert-file": pki.etcd.certificateFile,
      "key-file": pki.etcd.keyFile,
      "trusted-ca-file": pki.etcdCa.certificateFile,
      "client-cert-auth": "true",
      "peer-cert-file": pki.etcd.certificateFile,
      "peer-key-file": pki.etcd.keyFile,
      "peer-trusted-ca-file": pki.etcdCa.certificateFile,
      "peer-client-cert-auth": "true",
      // A development cluster may lose its last second when the machine does; it need not wait for the disk.
      "unsafe-no-fsync": "true",
      "log-level": "warn",
    }),
  };
}

export function apiServer(
  { layout, pki }: ControlPlane,
  command: string,
  ports: { own: number; etcd: number },
  probe: HealthProbe,
): Component {
  return {
    name: "kube-apiserver",
    command,
    cwd: layout.directory,
    port: ports.own,
    tier: 2,
    ...STOP,
    startSeconds: 60,
    isHealthy: () => probe.isOk(ports.own, "/readyz"),
    args: flags({
      "bind-address": "127.0.0.1",
      "advertise-address": "127.0.0.1",
      "secure-port": String(ports.own),
      // A loopback address cannot be an endpoint, and nothing runs in this cluster that would look for one.
      "endpoint-reconciler-type": "none",
      "etcd-servers": `https://127.0.0.1:${ports.etcd}`,
      "etcd-cafile": pki.etcdCa.certificateFile,
      "etcd-certfile": pki.apiServerEtcdClient.certificateFile,
      "etcd-keyfile": pki.apiServerEtcdClient.keyFile,
      "tls-cert-file": pki.apiServer.certificateFile,
      "tls-private-key-file": pki.apiServer.keyFile,
      "client-ca-file": pki.ca.certificateFile,
      "authorization-mode": "Node,RBAC",
      "service-account-issuer": "https://kubernetes.default.svc.cluster.local",
      "service-account-key-file": pki.serviceAccountPublicKeyFile,
      "service-account-signing-key-file": pki.serviceAccountKeyFile,
      "service-cluster-ip-range": SERVICE_RANGE,
    }),
  };
}

export function controllerManager(
  { layout, pki }: ControlPlane,
  command: string,
  port: number,
  probe: HealthProbe,
): Component {
  const kubeconfig = componentKubeconfig(layout, "controller-manager");
  return {
    ...kubernetesClient(layout, port, probe),
    name: "kube-controller-manager",
    command,
    args: flags({
      ...clientFlags(pki, kubeconfig, port),
      "use-service-account-credentials": "true",
      "service-account-private-key-file": pki.serviceAccountKeyFile,
      "root-ca-file": pki.ca.certificateFile,
      "cluster-signing-cert-file": pki.ca.certificateFile,
      "cluster-signing-key-file": pki.ca.keyFile,
      "service-cluster-ip-range": SERVICE_RANGE,
    }),
  };
}

export function scheduler({ layout, pki }: ControlPlane, command: string, port: number, probe: HealthProbe): Component {
  const kubeconfig = componentKubeconfig(layout, "scheduler");
  return {
    ...kubernetesClient(layout, port, probe),
    name: "kube-scheduler",
    command,
    args: flags(clientFlags(pki, kubeconfig, port)),
  };
}

export function kwok(
  { layout, pki }: ControlPlane,
  binaries: { kwok: string; stages: string },
  port: number,
  probe: HealthProbe,
): Component {
  const kubeconfig = componentKubeconfig(layout, "kwok");
  const [annotation] = Object.entries(FAKE_NODE_ANNOTATION).map(([name, value]) => `${name}=${value}`);
  return {
    ...kubernetesClient(layout, port, probe),
    name: "kwok",
    command: binaries.kwok,
    args: flags({
      kubeconfig,
      config: binaries.stages,
      "manage-all-nodes": "false",
      "manage-nodes-with-annotation-selector": annotation as string,
      "node-lease-duration-seconds": "40",
      "node-ip": NODE_ADDRESS,
      cidr: POD_RANGE,
      "server-address": `127.0.0.1:${port}`,
      "tls-cert-file": pki.serving.certificateFile,
      "tls-private-key-file": pki.serving.keyFile,
    }),
  };
}

/** The kubeconfig that a component uses to reach the API server. */
export function componentKubeconfig(layout: Layout, component: "controller-manager" | "scheduler" | "kwok"): string {
  return path.join(layout.pki, `${component}.kubeconfig`);
}

/** What kwok needs: the API server has roles for its own components only. */
export const kwokRole = [
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

/** A node that kwok pretends to run. */
export function fakeNode(name: string) {
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: {
      name,
      annotations: FAKE_NODE_ANNOTATION,
      labels: { "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", type: "kwok" },
    },
  };
}

function kubernetesClient(layout: Layout, port: number, probe: HealthProbe) {
  return {
    cwd: layout.directory,
    port,
    tier: 3,
    ...STOP,
    startSeconds: 30,
    isHealthy: () => probe.isOk(port, "/healthz"),
  };
}

function clientFlags(pki: Pki, kubeconfig: string, port: number) {
  return {
    kubeconfig,
    "authentication-kubeconfig": kubeconfig,
    "authorization-kubeconfig": kubeconfig,
    "bind-address": "127.0.0.1",
    "secure-port": String(port),
    "tls-cert-file": pki.serving.certificateFile,
    "tls-private-key-file": pki.serving.keyFile,
    "leader-elect": "false", // there is no other one
    // The defaults suit clusters whose API server has others to serve.
    "kube-api-qps": "200",
    "kube-api-burst": "400",
  };
}

function flags(values: Readonly<Record<string, string>>): string[] {
  return Object.entries(values).map(([name, value]) => `--${name}=${value}`);
}
