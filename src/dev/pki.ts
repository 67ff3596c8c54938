import { generateKeyPairSync } from "node:crypto";
import { existsSync } from "node:fs";
import fs from "node:fs/promises";
import path from "node:path";
import { type CertificateRequest, type CertifiedKey, createAuthority, issueCertificate } from "../tls/certificate";

/** A certificate and its key, as files and as text. */
export interface Credential extends CertifiedKey {
  certificateFile: string;
  keyFile: string;
}

export interface Pki {
  ca: Credential;
  /** etcd trusts a CA of its own: a client of the API server is not a client of its database. */
  etcdCa: Credential;
  etcd: Credential;
  apiServerEtcdClient: Credential;
  apiServer: Credential;
  /** What the controller manager, the scheduler and kwok serve their health with. */
  serving: Credential;
  admin: Credential;
  controllerManager: Credential;
  scheduler: Credential;
  kwok: Credential;
  serviceAccountKeyFile: string;
  serviceAccountPublicKeyFile: string;
}

const DAY_MS = 86_400_000;
const CA_DAYS = 3650;
const LEAF_DAYS = 365;
const LOCAL = ["127.0.0.1", "localhost"];

/**
 * The certificates of a cluster, in `directory`. The CAs and the key of the service accounts are made once, as what
 * they signed must stay valid; all other certificates are issued again at every call, so that none expires unnoticed.
 */
export async function preparePki(directory: string, apiServerServiceAddress: string): Promise<Pki> {
  await fs.mkdir(directory, { recursive: true, mode: 0o700 });
  const ca = await loadOrCreateCa(directory, "ca");
  const etcdCa = await loadOrCreateCa(directory, "etcd-ca");
  const notAfter = daysFromNow(LEAF_DAYS);
  const signed = async (name: string, by: CertifiedKey, request: Omit<CertificateRequest, "notAfter">) =>
    writeCredential(directory, name, await issueCertificate(by, { ...request, notAfter }));
  const client = (name: string, user: string, group?: string) =>
    signed(name, ca, { subject: { CN: user, ...(group && { O: group }) }, usages: ["client"] });
  const serviceAddresses = [
    ...["kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"],
    apiServerServiceAddress,
  ];
  return {
    ca,
    etcdCa,
    // As a peer, etcd is a client too.
    etcd: await signed("etcd", etcdCa, { subject: { CN: "etcd" }, usages: ["server", "client"], names: LOCAL }),
    apiServerEtcdClient: await signed("apiserver-etcd-client", etcdCa, {
      subject: { CN: "kube-apiserver" },
      usages: ["client"],
    }),
    apiServer: await signed("apiserver", ca, {
      subject: { CN: "kube-apiserver" },
      usages: ["server"],
      names: [...LOCAL, ...serviceAddresses],
    }),
    serving: await signed("serving", ca, { subject: { CN: "localhost" }, usages: ["server"], names: LOCAL }),
    admin: await client("admin", "kubernetes-admin", "system:masters"),
    controllerManager: await client("controller-manager", "system:kube-controller-manager"),
    scheduler: await client("scheduler", "system:kube-scheduler"),
    kwok: await client("kwok", KWOK_USER),
    ...(await loadOrCreateServiceAccountKey(directory)),
  };
}

/** The user that kwok is to the API server. */
export const KWOK_USER = "system:kwok";

async function loadOrCreateCa(directory: string, name: string): Promise<Credential> {
  const [certificateFile, keyFile] = [path.join(directory, `${name}.crt`), path.join(directory, `${name}.key`)];
  if (!existsSync(certificateFile) || !existsSync(keyFile)) {
    await writeCredential(directory, name, await createAuthority(`kindstack-dev-${name}`, daysFromNow(CA_DAYS)));
  }
  const [certificate, key] = [await fs.readFile(certificateFile, "utf8"), await fs.readFile(keyFile, "utf8")];
  return { certificateFile, keyFile, certificate, key };
}

async function loadOrCreateServiceAccountKey(
  directory: string,
): Promise<Pick<Pki, "serviceAccountKeyFile" | "serviceAccountPublicKeyFile">> {
  const serviceAccountKeyFile = path.join(directory, "service-account.key");
  const serviceAccountPublicKeyFile = path.join(directory, "service-account.pub");
  if (!existsSync(serviceAccountKeyFile) || !existsSync(serviceAccountPublicKeyFile)) {
    const { privateKey, publicKey } = generateKeyPairSync("ec", {
      namedCurve: "P-256",
      privateKeyEncoding: { type: "pkcs8", format: "pem" },
      publicKeyEncoding: { type: "spki", format: "pem" },
    });
    await fs.writeFile(serviceAccountKeyFile, privateKey, { mode: 0o600 });
    await fs.writeFile(serviceAccountPublicKeyFile, publicKey);
  }
  return { serviceAccountKeyFile, serviceAccountPublicKeyFile };
}

async function writeCredential(
  directory: string,
  name: string,
  { certificate, key }: CertifiedKey,
): Promise<Credential> {
  const [certificateFile, keyFile] = [path.join(directory, `${name}.crt`), path.join(directory, `${name}.key`)];
  await fs.writeFile(keyFile, key, { mode: 0o600 });
  await fs.writeFile(certificateFile, certificate);
  return { certificateFile, keyFile, certificate, key };
}

function daysFromNow(days: number): Date {
  return new Date(Date.now() + days * DAY_MS);
}
