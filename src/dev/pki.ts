import "reflect-metadata"; // @peculiar/x509 needs it to be there first
import { randomBytes, type webcrypto as WebCrypto, webcrypto } from "node:crypto";
import fs from "node:fs/promises";
import path from "node:path";
import * as x509 from "@peculiar/x509";

type KeyPair = WebCrypto.CryptoKeyPair;

/** A certificate and its key, as files and as text. */
export interface Credential {
  certificateFile: string;
  keyFile: string;
  certificate: string;
  key: string;
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

const ALGORITHM = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
const DAY_MS = 86_400_000;
const CA_DAYS = 3650;
const LEAF_DAYS = 365;
const LOCAL = ["127.0.0.1", "localhost"];

/**
 * The certificates of a cluster, in `directory`. The CAs and the key of the service accounts are made once, as what
 * they signed must stay valid; all other certificates are issued anew at every call, so that none expires unnoticed.
 */
export async function preparePki(directory: string, apiServerServiceAddress: string): Promise<Pki> {
  await fs.mkdir(directory, { recursive: true, mode: 0o700 });
  const ca = await loadOrCreateCa(directory, "ca");
  const etcdCa = await loadOrCreateCa(directory, "etcd-ca");
  const { serverAuth, clientAuth } = x509.ExtendedKeyUsage;
  const client = (name: string, user: string, group?: string) =>
    issue(directory, ca, name, { CN: user, ...(group && { O: group }) }, [clientAuth]);
  const serviceAddresses = [
    ...["kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"],
    apiServerServiceAddress,
  ];
  return {
    ca: ca.credential,
    etcdCa: etcdCa.credential,
    // As a peer, etcd is a client too.
    etcd: await issue(directory, etcdCa, "etcd", { CN: "etcd" }, [serverAuth, clientAuth], LOCAL),
    apiServerEtcdClient: await issue(directory, etcdCa, "apiserver-etcd-client", { CN: "kube-apiserver" }, [
      clientAuth,
    ]),
    apiServer: await issue(
      directory,
      ca,
      "apiserver",
      { CN: "kube-apiserver" },
      [serverAuth],
      [...LOCAL, ...serviceAddresses],
    ),
    serving: await issue(directory, ca, "serving", { CN: "localhost" }, [serverAuth], LOCAL),
    admin: await client("admin", "kubernetes-admin", "system:masters"),
    controllerManager: await client("controller-manager", "system:kube-controller-manager"),
    scheduler: await client("scheduler", "system:kube-scheduler"),
    kwok: await client("kwok", KWOK_USER),
    ...(await loadOrCreateServiceAccountKey(directory)),
  };
}

/** The user that kwok is to the API server. */
export const KWOK_USER = "system:kwok";

interface Authority {
  credential: Credential;
  certificate: x509.X509Certificate;
  key: WebCrypto.CryptoKey;
}

async function loadOrCreateCa(directory: string, name: string): Promise<Authority> {
  const [certificateFile, keyFile] = [path.join(directory, `${name}.crt`), path.join(directory, `${name}.key`)];
  if (!(await isFile(certificateFile)) || !(await isFile(keyFile))) {
    const keys = await generateKeys();
    const certificate = await x509.X509CertificateGenerator.createSelfSigned(
      {
        serialNumber: serialNumber(),
        name: [{ CN: [`kindstack-dev-${name}`] }],
        ...validity(CA_DAYS),
        signingAlgorithm: ALGORITHM,
        keys,
        extensions: [
          new x509.BasicConstraintsExtension(true, undefined, true),
          new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
          await x509.SubjectKeyIdentifierExtension.create(keys.publicKey, false, webcrypto),
        ],
      },
      webcrypto,
    );
    await writeCredential(directory, name, certificate, keys.privateKey);
  }
  const [certificate, key] = [await fs.readFile(certificateFile, "utf8"), await fs.readFile(keyFile, "utf8")];
  return {
    credential: { certificateFile, keyFile, certificate, key },
    certificate: new x509.X509Certificate(certificate),
    key: await webcrypto.subtle.importKey("pkcs8", x509.PemConverter.decodeFirst(key), ALGORITHM, false, ["sign"]),
  };
}

async function issue(
  directory: string,
  authority: Authority,
  name: string,
  subject: { CN: string; O?: string },
  usages: string[],
  addresses: string[] = [],
): Promise<Credential> {
  const keys = await generateKeys();
  const alternativeNames = addresses.map((value) => ({
    type: /^\d+(\.\d+){3}$/.test(value) ? ("ip" as const) : ("dns" as const),
    value,
  }));
  const certificate = await x509.X509CertificateGenerator.create(
    {
      serialNumber: serialNumber(),
      subject: Object.entries(subject).map(([attribute, value]) => ({ [attribute]: [value] })),
      issuer: authority.certificate.subjectName,
      ...validity(LEAF_DAYS),
      signingAlgorithm: ALGORITHM,
      publicKey: keys.publicKey,
      signingKey: authority.key,
      extensions: [
        new x509.BasicConstraintsExtension(false, undefined, true),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
        new x509.ExtendedKeyUsageExtension(usages),
        await x509.AuthorityKeyIdentifierExtension.create(authority.certificate, false, webcrypto),
        ...(alternativeNames.length > 0 ? [new x509.SubjectAlternativeNameExtension(alternativeNames)] : []),
      ],
    },
    webcrypto,
  );
  return writeCredential(directory, name, certificate, keys.privateKey);
}

async function loadOrCreateServiceAccountKey(
  directory: string,
): Promise<Pick<Pki, "serviceAccountKeyFile" | "serviceAccountPublicKeyFile">> {
  const serviceAccountKeyFile = path.join(directory, "service-account.key");
  const serviceAccountPublicKeyFile = path.join(directory, "service-account.pub");
  if (!(await isFile(serviceAccountKeyFile)) || !(await isFile(serviceAccountPublicKeyFile))) {
    const keys = await generateKeys();
    const publicKey = x509.PemConverter.encode(await webcrypto.subtle.exportKey("spki", keys.publicKey), "PUBLIC KEY");
    await fs.writeFile(serviceAccountKeyFile, await privateKeyText(keys.privateKey), { mode: 0o600 });
    await fs.writeFile(serviceAccountPublicKeyFile, publicKey);
  }
  return { serviceAccountKeyFile, serviceAccountPublicKeyFile };
}

async function writeCredential(
  directory: string,
  name: string,
  certificate: x509.X509Certificate,
  privateKey: WebCrypto.CryptoKey,
): Promise<Credential> {
  const credential = {
    certificateFile: path.join(directory, `${name}.crt`),
    keyFile: path.join(directory, `${name}.key`),
    certificate: certificate.toString("pem"),
    key: await privateKeyText(privateKey),
  };
  await fs.writeFile(credential.keyFile, credential.key, { mode: 0o600 });
  await fs.writeFile(credential.certificateFile, credential.certificate);
  return credential;
}

function generateKeys(): Promise<KeyPair> {
  return webcrypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"]);
}

async function privateKeyText(key: WebCrypto.CryptoKey): Promise<string> {
  return x509.PemConverter.encode(await webcrypto.subtle.exportKey("pkcs8", key), "PRIVATE KEY");
}

function serialNumber(): string {
  const bytes = randomBytes(16);
  bytes[0] = (bytes[0] as number) & 0x7f; // positive, as an ASN.1 integer
  return bytes.toString("hex");
}

function validity(days: number): { notBefore: Date; notAfter: Date } {
  return { notBefore: new Date(Date.now() - 3_600_000), notAfter: new Date(Date.now() + days * DAY_MS) };
}

function isFile(file: string): Promise<boolean> {
  return fs.access(file).then(
    () => true,
    () => false,
  );
}
