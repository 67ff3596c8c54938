import type { Layout } from "./layout";
import type { Pki } from "./pki";

/** Arguments of a component. They are kubeadm's, but bound to 127.0.0.1. */
export type Flags = Readonly<Record<string, string>>;

const SERVICE_RANGE = "10.0.0.0/24";

export function etcdFlags(layout: Layout, pki: Pki, clientPort: number, peerPort: number): Flags {
  const [clientUrl, peerUrl] = [`https://127.0.0.1:${clientPort}`, `https://127.0.0.1:${peerPort}`];
  return {
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
  };
}

export function apiServerFlags(pki: Pki, port: number, etcdPort: number): Flags {
  return {
    "bind-address": "127.0.0.1",
    "advertise-address": "127.0.0.1",
    "secure-port": String(port),
    // A loopback address cannot be an endpoint, and nothing in this cluster needs one.
    "endpoint-reconciler-type": "none",
    "etcd-servers": `https://127.0.0.1:${etcdPort}`,
    "etcd-cafile": pki.etcdCa.certificateFile,
    "etcd-certfile": pki.apiServerEtcdClient.certificateFile,
    "etcd-keyfile": pki.apiServerEtcdClient.keyFile,
    "tls-cert-file": pki.apiServer.certificateFile,
    "tls-private-key-file": pki.apiServer.keyFile,
    "client-ca-file": pki.ca.certificateFile,
    "authorization-mode": "Node,RBAC",
    "service-account-issuer": "https://kubernetes.default.svc.cluster.local",
    "service-account-key-file": pki.serviceAccount.certificateFile,
    "service-account-signing-key-file": pki.serviceAccount.keyFile,
    "service-cluster-ip-range": SERVICE_RANGE,
  };
}

/** Of the controller manager and the scheduler. */
export function controllerFlags(port: number, kubeconfig: string): Flags {
  return {
    "authentication-kubeconfig": kubeconfig,
    "authorization-kubeconfig": kubeconfig,
    "bind-address": "127.0.0.1",
    "secure-port": String(port),
    "leader-elect": "false", // there is only one instance
    // The defaults protect API servers with other clients.
    "kube-api-qps": "200",
    "kube-api-burst": "400",
  };
}

export function controllerManagerFlags(pki: Pki, port: number, kubeconfig: string): Flags {
  return {
    ...controllerFlags(port, kubeconfig),
    "use-service-account-credentials": "true",
    "service-account-private-key-file": pki.serviceAccount.keyFile,
    "root-ca-file": pki.ca.certificateFile,
    "cluster-signing-cert-file": pki.ca.certificateFile,
    "cluster-signing-key-file": pki.ca.keyFile,
    "service-cluster-ip-range": SERVICE_RANGE,
  };
}
