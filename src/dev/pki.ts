import { existsSync } from "node:fs";
import fs from "node:fs/promises";
import path from "node:path";
import { KubeConfig } from "@kubernetes/client-node";
import { type CertificateRequest, type CertifiedKey, createAuthority, issueCertificate } from "../tls/certificate";

export interface Credential extends CertifiedKey {
  certificateFile: string;
  keyFile: string;
}

export type Pki = Awaited<ReturnType<typeof preparePki>>;

/** The user as which the API server knows kwok. */
export const KWOK_USER = "system:kwok";

/** Of the service `kubernetes`: the first one of the services' range. */
const API_SERVER_SERVICE_ADDRESS = "10.0.0.1";

const DAY_MS = 86_400_000;
const CA_DAYS = 3650;
const LEAF_DAYS = 365;
const LOCAL = ["127.0.0.1", "localhost"];

/**
 * The certificates of a cluster, in `directory`. The CAs and the key of the service accounts are made once: their
 * signatures must stay valid. All other certificates are issued again at every call, so that none expires unnoticed.
 */
export async function preparePki(directory: string) {
  await fs.mkdir(directory, { recursive: true, mode: 0o700 });
  const ca = await loadOrCreateCa(directory, "ca");
  // etcd trusts a CA of its own: a client of the API server is not a client of its database.
  const etcdCa = await loadOrCreateCa(directory, "etcd-ca");
  const issue = async (name: string, by: CertifiedKey, request: Omit<CertificateRequest, "notAfter">) =>
    writeCredential(directory, name, await issueCertificate(by, { ...request, notAfter: daysFromNow(LEAF_DAYS) }));
  const client = (name: string, subject: CertificateRequest["subject"], by = ca) =>
    issue(name, by, { subject, usages: ["client"] });
  const services = [
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
  ];
  return {
    ca,
    etcdCa,
    // As a peer, etcd is a client too.
    etcd: await issue("etcd", etcdCa, { subject: { CN: "etcd" }, usages: ["server", "client"], names: LOCAL }),
    apiServerEtcdClient: await client("apiserver-etcd-client", { CN: "kube-apiserver" }, etcdCa),
    apiServer: await issue("apiserver", ca, {
      subject: { CN: "kube-apiserver" },
      usages: ["server"],
      names: [...LOCAL, ...services, API_SERVER_SERVICE_ADDRESS],
    }),
    /** The controller manager, the scheduler and kwok serve their health endpoints with it. */
    serving: await issue("serving", ca, { subject: { CN: "localhost" }, usages: ["server"], names: LOCAL }),
    admin: await client("admin", { CN: "kubernetes-admin", O: "system:masters" }),
    controllerManager: await client("controller-manager", { CN: "system:kube-controller-manager" }),
    scheduler: await client("scheduler", { CN: "system:kube-scheduler" }),
    kwok: await client("kwok", { CN: KWOK_USER }),
    /** Signs tokens. The API server takes the public key from the certificate. */
    serviceAccount: await loadOrCreateCa(directory, "service-account"),
  };
}

/** A kubeconfig that holds its certificates and key itself. */
export function kubeconfigOf(server: string, ca: CertifiedKey, { certificate, key }: CertifiedKey): KubeConfig {
  const name = "kindstack-dev";
  const base64 = (text: string) => Buffer.from(text).toString("base64");
  const config = new KubeConfig();
  config.loadFromOptions({
    clusters: [{ name, server, caData: base64(ca.certificate) }],
    users: [{ name, certData: base64(certificate), keyData: base64(key) }],
    contexts: [{ name, cluster: name, user: name }],
    currentContext: name,
  });
  return config;
}

async function loadOrCreateCa(directory: string, name: string): Promise<Credential> {
  const { certificateFile, keyFile } = filesOf(directory, name);
  if (!existsSync(certificateFile) || !existsSync(keyFile)) {
    await writeCredential(directory, name, await createAuthority(`kindstack-dev-${name}`, daysFromNow(CA_DAYS)));
  }
  const [certificate, key] = [await fs.readFile(certificateFile, "utf8"), await fs.readFile(keyFile, "utf8")];
  return { certificateFile, keyFile, certificate, key };
}

async function writeCredential(directory: string, name: string, certified: CertifiedKey): Promise<Credential> {
  const files = filesOf(directory, name);
  await fs.writeFile(files.keyFile, certified.key, { mode: 0o600 });
  await fs.writeFile(files.certificateFile, certified.certificate);
  return { ...files, ...certified };
}

function filesOf(directory: string, name: string): Pick<Credential, "certificateFile" | "keyFile"> {
  return { certificateFile: path.join(directory, `${name}.crt`), keyFile: path.join(directory, `${name}.key`) };
}

function daysFromNow(days: number): Date {
  return new Date(Date.now() + days * DAY_MS);
}
