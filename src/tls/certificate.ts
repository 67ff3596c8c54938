import "reflect-metadata"; // @peculiar/x509 needs it to be there first
import { KeyObject, webcrypto } from "node:crypto";
import { isIP } from "node:net";
import * as x509 from "@peculiar/x509";

export interface CertifiedKey {
  certificate: string;
  key: string;
}

export interface CertificateRequest {
  subject: { CN: string; O?: string };
  usages: readonly ("server" | "client")[];
  /** Host names and IP addresses of the certificate. */
  names?: readonly string[];
  notAfter: Date;
}

const ALGORITHM = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
/** Other machines' clocks may be behind. */
const BACKDATED_MS = 3_600_000;
const USAGES = { server: x509.ExtendedKeyUsage.serverAuth, client: x509.ExtendedKeyUsage.clientAuth } as const;

/** A new CA, which signs itself. */
export async function createAuthority(commonName: string, notAfter: Date): Promise<CertifiedKey> {
  const keys = await generateKeys();
  const name = [{ CN: [commonName] }];
  return certify(keys, notAfter, {
    subject: name,
    issuer: name,
    signingKey: keys.privateKey,
    extensions: [
      new x509.BasicConstraintsExtension(true, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
}

/** A new certificate with a key of its own. @throws when the authority's certificate or key is invalid */
export async function issueCertificate(
  authority: CertifiedKey,
  { subject, usages, names = [], notAfter }: CertificateRequest,
): Promise<CertifiedKey> {
  const issuer = new x509.X509Certificate(authority.certificate);
  const issuerKey = x509.PemConverter.decodeFirst(authority.key);
  const alternativeNames = names.map((value) => ({
    type: isIP(value) ? ("ip" as const) : ("dns" as const),
    value,
  }));
  return certify(await generateKeys(), notAfter, {
    subject: Object.entries(subject).map(([attribute, value]) => ({ [attribute]: [value] })),
    issuer: issuer.subjectName,
    signingKey: await webcrypto.subtle.importKey("pkcs8", issuerKey, ALGORITHM, false, ["sign"]),
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension(usages.map((usage) => USAGES[usage])),
      await x509.AuthorityKeyIdentifierExtension.create(issuer),
      ...(alternativeNames.length > 0 ? [new x509.SubjectAlternativeNameExtension(alternativeNames)] : []),
    ],
  });
}

function generateKeys(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"]);
}

async function certify(
  { publicKey, privateKey }: webcrypto.CryptoKeyPair,
  notAfter: Date,
  params: Pick<x509.X509CertificateCreateWithKeyParams, "subject" | "issuer" | "signingKey" | "extensions">,
): Promise<CertifiedKey> {
  const certificate = await x509.X509CertificateGenerator.create({
    ...params,
    publicKey,
    signingAlgorithm: ALGORITHM,
    notBefore: new Date(Math.min(Date.now(), notAfter.getTime()) - BACKDATED_MS),
    notAfter,
  });
  const key = KeyObject.from(privateKey).export({ type: "pkcs8", format: "pem" });
  return { certificate: certificate.toString("pem"), key: String(key) };
}
