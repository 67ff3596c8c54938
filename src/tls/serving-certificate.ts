import type { Logger } from "pino";
import { RetryableError } from "../../providers/errors";
import { isApiError, type KubernetesClient, known, type LiveObject } from "../../providers/kubernetes/client";
import { caBundleOf, isUsable, type Lifetimes, renew, type TlsMaterial } from "./material";
import { poll } from "./poll";
import type { ServedCertificate } from "./served-certificate";

export interface ServingCertificateOptions {
  client: Pick<KubernetesClient, "get" | "create" | "mergePatch">;
  /** Where the Secret is kept, and what it is called. */
  namespace: string;
  name: string;
  /** Host names and IP addresses that clients use to reach the server. */
  dnsNames: readonly string[];
  logger: Logger;
  lifetimes?: Lifetimes;
  /** How often the Secret is read, for changes by other replicas and for renewals that are due. */
  pollMs?: number;
  /** How long a CA is published before it may sign. By then, all replicas and API servers must have learned of it. */
  propagationMs?: number;
}

/**
 * A certificate that is always valid, shared with all replicas by a Secret. A listener that publishes the bundle must
 * reject when that fails: a new CA waits for it.
 */
interface ServingCertificate extends ServedCertificate {
  /** All CAs that a client has to trust, as PEM. */
  readonly caBundle: string;
}

const SECRET = { apiVersion: "v1", kind: "Secret" } as const;
const DAY_MS = 86_400_000;
const LIFETIMES: Lifetimes = { caMs: 730 * DAY_MS, servingMs: 90 * DAY_MS };
const POLL_MS = 60_000;
const PROPAGATION_MS = 5 * 60_000;
/** Losing this often against other replicas indicates another problem. */
const MAX_ATTEMPTS = 5;

/**
 * Opens the certificate of a server: reads it from the Secret, or creates it. Everything is in one Secret: one
 * compare-and-swap decides between replicas, and the second replica uses the certificate of the first.
 *
 * The Secret is polled, not watched: polling needs only the right to read this one Secret, and a certificate that is
 * renewed a month early may arrive a minute late.
 *
 * @throws ApiError when the Secret can be neither read nor made
 */
export async function openServingCertificate(options: ServingCertificateOptions): Promise<ServingCertificate> {
  const { name, logger, pollMs = POLL_MS, propagationMs = PROPAGATION_MS } = options;
  const material = await poll<TlsMaterial>((held, knownMs) => agree(options, held, knownMs >= propagationMs), {
    intervalMs: pollMs,
    logger: logger.child({ secret: name }),
  });
  const contextOf = ({ serving }: TlsMaterial) => ({ cert: serving.certificate, key: serving.key });
  return {
    get caBundle() {
      return caBundleOf(material.current);
    },
    get current() {
      return contextOf(material.current);
    },
    follow: (listener) => material.follow((latest) => listener(contextOf(latest))),
    close: material.close,
  };
}

/** The material of all replicas: what is stored or, when a renewal is due, what the first of them stores. */
async function agree(
  options: ServingCertificateOptions,
  held: TlsMaterial | undefined,
  nextIsKnown: boolean,
): Promise<TlsMaterial> {
  const { client, namespace, name, dnsNames, lifetimes = LIFETIMES } = options;
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const secret = await known(client.get(SECRET, name, namespace));
    // What was deleted or damaged is restored as it was: clients trust it.
    const stored = secret && materialOf(secret);
    const current = stored ?? held;
    const wanted = await renew(current, {
      name: `${name}-ca`,
      names: dnsNames,
      lifetimes,
      now: Date.now(),
      // This replica has not published what others have written meanwhile.
      nextIsKnown: nextIsKnown && current?.next?.certificate === held?.next?.certificate,
    });
    if (wanted === stored) return stored;
    try {
      await write(options, wanted, secret);
      return wanted;
    } catch (error) {
      if (!isApiError(error, 409, 404)) throw error;
    }
  }
  throw new RetryableError(
    "Conflict",
    `failed to write the Secret ${namespace}/${name}: another client keeps changing it`,
  );
}

/** The names of the Secret's keys are those that other TLS Secrets have. */
async function write(
  { client, namespace, name }: ServingCertificateOptions,
  { ca, next, previous, serving }: TlsMaterial,
  stored: LiveObject | undefined,
): Promise<void> {
  const absent = stored === undefined ? undefined : null; // what a merge patch removes
  const base64 = (text: string | undefined) => (text === undefined ? absent : Buffer.from(text).toString("base64"));
  const data = {
    "tls.crt": base64(serving.certificate),
    "tls.key": base64(serving.key),
    "ca.crt": base64(ca.certificate),
    "ca.key": base64(ca.key),
    "next-ca.crt": base64(next?.certificate),
    "next-ca.key": base64(next?.key),
    "previous-ca.crt": base64(previous),
  };
  if (stored === undefined) {
    const labels = { "app.kubernetes.io/managed-by": "kindstack" };
    await client.create({ ...SECRET, metadata: { name, namespace, labels }, data });
    return;
  }
  const { uid, resourceVersion } = stored.metadata;
  await client.mergePatch(SECRET, name, namespace, { metadata: { uid, resourceVersion }, data });
}

/** What a Secret holds; `undefined` when it is not usable. */
function materialOf(secret: LiveObject): TlsMaterial | undefined {
  const data = (secret.data ?? {}) as Record<string, unknown>;
  const text = (key: string): string | undefined => {
    const value = data[key];
    return typeof value === "string" && value !== "" ? Buffer.from(value, "base64").toString("utf8") : undefined;
  };
  const pair = (name: string) => {
    const [certificate, key] = [text(`${name}.crt`), text(`${name}.key`)];
    return certificate === undefined || key === undefined ? undefined : { certificate, key };
  };
  const [ca, serving] = [pair("ca"), pair("tls")];
  if (ca === undefined || serving === undefined) return undefined;
  const material = { ca, serving, next: pair("next-ca"), previous: text("previous-ca.crt") };
  return isUsable(material) ? material : undefined;
}
