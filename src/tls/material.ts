import { createPrivateKey, X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { type CertifiedKey, createAuthority, issueCertificate } from "./certificate";

/** Everything that a TLS server of ours stands on, as it is stored. */
export interface TlsMaterial {
  /** The CA that signs. */
  ca: CertifiedKey;
  /** The CA that will sign next: already trusted, so that clients know it before it is used. */
  next: CertifiedKey | undefined;
  /** The certificate of the CA that signed before; trusted while a server may still show what it signed. */
  previous: string | undefined;
  serving: CertifiedKey;
}

/** How long certificates are valid, in ms. Each is renewed when a third of it is left. */
export interface Lifetimes {
  caMs: number;
  servingMs: number;
}

export interface Renewal {
  /** The CA's common name. */
  name: string;
  /** What the serving certificate must be good for: host names and IP addresses. */
  names: readonly string[];
  lifetimes: Lifetimes;
  /** ms since the epoch */
  now: number;
  /** Whether everyone who checks has had the time to learn of the next CA. */
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
 * What is to be used from now on; the same object when nothing is due.
 *
 * A CA is changed in three steps, so that no client ever sees a certificate that it does not trust yet: the next CA
 * is added to the bundle; when that is known everywhere it signs; and the one before stays in the bundle until it expires.
 *
 * @param material what is stored; `undefined` when there is nothing that could be used
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
  // One that ends with its CA cannot be made to last longer: it is replaced when the next CA signs.
  const canLastLonger = endOf(serving.certificate) < endOf(ca.certificate);
  if ((isDue(serving.certificate, lifetimes.servingMs) && canLastLonger) || !isGoodFor(serving, names)) {
    current = { ...current, serving: await sign(ca, renewal, serving) };
  }
  return current;
}

/** Whether texts from outside are material: certificates that parse, keys that belong to them, one signed by the other. */
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
  // Names of before are kept: replicas with other names would replace each other's certificate again and again otherwise.
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
