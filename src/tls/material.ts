import { createPrivateKey, X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { type CertifiedKey, createAuthority, issueCertificate } from "./certificate";

export interface TlsMaterial {
  ca: CertifiedKey;
  /** The CA that will sign next: clients trust it before its first signature. */
  next: CertifiedKey | undefined;
  /** The certificate of the former CA; trusted while a server may still use a certificate that it signed. */
  previous: string | undefined;
  serving: CertifiedKey;
}

/** How long certificates are valid, in ms. Each is renewed when a third of it is left. */
export interface Lifetimes {
  caMs: number;
  servingMs: number;
}

export interface Renewal {
  name: string;
  /** Host names and IP addresses of the serving certificate. */
  names: readonly string[];
  lifetimes: Lifetimes;
  /** ms since the epoch */
  now: number;
  /** Whether all clients have had time to learn of the next CA. */
  nextIsKnown: boolean;
}

/** All CAs that are to be trusted, as PEM. */
export function caBundleOf({ ca, next, previous }: TlsMaterial): string {
  return [ca.certificate, next?.certificate, previous]
    .filter((certificate) => certificate !== undefined)
    .map((certificate) => `${certificate.trim()}\n`)
    .join("");
}

/**
 * The material to use from now on; the same object when nothing is due.
 *
 * A CA is replaced in three steps, so that clients always trust the certificate: the next CA is added to the bundle;
 * once all clients know it, it signs; the former CA stays in the bundle until it expires.
 */
export async function renew(material: TlsMaterial | undefined, renewal: Renewal): Promise<TlsMaterial> {
  const { names, lifetimes, now } = renewal;
  const isExpired = (certificate: string) => endOf(certificate) <= now;
  const isDue = (certificate: string, lifetimeMs: number) => endOf(certificate) - now < lifetimeMs / 3;
  const newAuthority = () => createAuthority(renewal.name, new Date(now + lifetimes.caMs));
  if (material === undefined || isExpired(material.ca.certificate)) {
    // No client trusts an expired CA, so it can be replaced at once.
    const ca = material?.next ?? (await newAuthority());
    return { ca, next: undefined, previous: undefined, serving: await sign(ca, renewal) };
  }
  let current = material;
  if (current.next !== undefined && renewal.nextIsKnown) {
    const { ca, next, serving } = current;
    current = { ca: next, next: undefined, previous: ca.certificate, serving: await sign(next, renewal, serving) };
  } else if (current.next === undefined && isDue(current.ca.certificate, lifetimes.caMs)) {
    current = { ...current, next: await newAuthority() };
  }
  if (current.previous !== undefined && isExpired(current.previous)) current = { ...current, previous: undefined };

  const { ca, serving } = current;
  // A certificate that expires with its CA cannot be extended: it is replaced when the next CA signs.
  const canLastLonger = endOf(serving.certificate) < endOf(ca.certificate);
  if ((isDue(serving.certificate, lifetimes.servingMs) && canLastLonger) || !isGoodFor(serving, names)) {
    current = { ...current, serving: await sign(ca, renewal, serving) };
  }
  return current;
}

/** Whether texts from outside are usable: the certificates parse, the keys match, and the CA has signed the serving certificate. */
export function isUsable({ ca, next, previous, serving }: TlsMaterial): boolean {
  try {
    if (previous !== undefined) new X509Certificate(previous);
    return (
      [ca, serving, next].every(
        (pair) =>
          pair === undefined || new X509Certificate(pair.certificate).checkPrivateKey(createPrivateKey(pair.key)),
      ) && new X509Certificate(serving.certificate).verify(new X509Certificate(ca.certificate).publicKey)
    );
  } catch {
    return false;
  }
}

async function sign(
  ca: CertifiedKey,
  { names, lifetimes, now }: Renewal,
  before?: CertifiedKey,
): Promise<CertifiedKey> {
  // Earlier names are kept: otherwise, replicas with different names would replace each other's certificate again and
  // again.
  const kept = before === undefined ? [] : namesOf(before.certificate);
  return issueCertificate(ca, {
    subject: { CN: "kindstack" },
    usages: ["server"],
    names: [...new Set([...names, ...kept])],
    notAfter: new Date(Math.min(now + lifetimes.servingMs, endOf(ca.certificate))),
  });
}

/** In ms since the epoch. */
function endOf(certificate: string): number {
  return Date.parse(new X509Certificate(certificate).validTo);
}

function isGoodFor({ certificate }: CertifiedKey, names: readonly string[]): boolean {
  const parsed = new X509Certificate(certificate);
  return names.every((name) => (isIP(name) ? parsed.checkIP(name) : parsed.checkHost(name)) !== undefined);
}

function namesOf(certificate: string): string[] {
  const { subjectAltName } = new X509Certificate(certificate);
  return subjectAltName?.split(", ").map((entry) => entry.replace(/^(DNS|IP Address):/, "")) ?? [];
}
