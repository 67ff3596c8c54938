import "reflect-metadata"; // @peculiar/x509 needs it to be there first
import { randomBytes, type webcrypto as WebCrypto, webcrypto } from "node:crypto";
import { isIP } from "node:net";
import * as x509 from "@peculiar/x509";

/** A certificate and its private key, as PEM. */
export interface CertifiedKey {
  certificate: string;
  key: string;
}

/** Who signs certificates. */
export interface Authority {
  certificate: x509.X509Certificate;
  key: WebCrypto.CryptoKey;
}

export interface CertificateRequest {
  subject: { CN: string; O?: string };
  usages: readonly ("server" | "client")[];
  /** Host names and IP addresses that the certificate is good for. */
  names?: readonly string[];
  notAfter: Date;
}

const ALGORITHM = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
/** Clocks of others may be late. */
const BACKDATED_MS = 3_600_000;
const USAGES = { server: x509.ExtendedKeyUsage.serverAuth, client: x509.ExtendedKeyUsage.clientAuth } as const;

/** A new CA, which signs itself. */
export async function createAuthority(commonName: string, notAfter: Date): Promise<CertifiedKey> {
  const keys = await generateKeys();
  const certificate = await x509.X509CertificateGenerator.createSelfSigned(
    {
      serialNumber: serialNumber(),
      name: [{ CN: [commonName] }],
      ...validUntil(notAfter),
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
  return { certificate: certificate.toString("pem"), key: await privateKeyText(keys.privateKey) };
}

/** A CA that can sign, from its texts. @throws when they are none */
export async function openAuthority({ certificate, key }: CertifiedKey): Promise<Authority> {
  return {
    certificate: new x509.X509Certificate(certificate),
    key: await webcrypto.subtle.importKey("pkcs8", x509.PemConverter.decodeFirst(key), ALGORITHM, false, ["sign"]),
  };
}

/** A new certificate with a key of its own. */
export async function issueCertificate(
  authority: Authority,
  { subject, usages, names = [], notAfter }: CertificateRequest,
): Promise<CertifiedKey> {
  const keys = await generateKeys();
  const alternativeNames = names.map((value) => ({
    type: isIP(value) ? ("ip" as const) : ("dns" as const),
    value,
  }));
  const certificate = await x509.X509CertificateGenerator.create(
    {
      serialNumber: serialNumber(),
      subject: Object.entries(subject).map(([attribute, value]) => ({ [attribute]: [value] })),
      issuer: authority.certificate.subjectName,
      ...validUntil(notAfter),
      signingAlgorithm: ALGORITHM,
      publicKey: keys.publicKey,
      signingKey: authority.key,
      extensions: [
        new x509.BasicConstraintsExtension(false, undefined, true),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
        new x509.ExtendedKeyUsageExtension(usages.map((usage) => USAGES[usage])),
        await x509.AuthorityKeyIdentifierExtension.create(authority.certificate, false, webcrypto),
        ...(alternativeNames.length > 0 ? [new x509.SubjectAlternativeNameExtension(alternativeNames)] : []),
      ],
    },
    webcrypto,
  );
  return { certificate: certificate.toString("pem"), key: await privateKeyText(keys.privateKey) };
}

/** A new pair of keys for signatures, as PEM. */
export async function createSigningKey(): Promise<{ privateKey: string; publicKey: string }> {
  const keys = await generateKeys();
  const publicKey = x509.PemConverter.encode(await webcrypto.subtle.exportKey("spki", keys.publicKey), "PUBLIC KEY");
  return { privateKey: await privateKeyText(keys.privateKey), publicKey };
}

function generateKeys(): Promise<WebCrypto.CryptoKeyPair> {
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

function validUntil(notAfter: Date): { notBefore: Date; notAfter: Date } {
  return { notBefore: new Date(Math.min(Date.now(), notAfter.getTime()) - BACKDATED_MS), notAfter };
}
