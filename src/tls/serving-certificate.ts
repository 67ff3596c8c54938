import { createHmac } from "node:crypto";
import { setInterval } from "node:timers";
import type { Logger } from "pino";
import { errorMessageOf, RetryableError } from "../../providers/errors";
import { ApiError, type KubernetesClient, type LiveObject, type Manifest } from "../../providers/kubernetes/client";
import { caBundleOf, isUsable, type Lifetimes, renew, type TlsMaterial } from "./material";

export interface ServingCertificateOptions {
  client: Pick<KubernetesClient, "get" | "create" | "mergePatch">;
  /** Where the Secret is kept, and what it is called. */
  namespace: string;
  name: string;
  /** Host names and IP addresses that clients use to reach the server. */
  dnsNames: readonly string[];
  logger: Logger;
  lifetimes?: Lifetimes;
  /** How often the Secret is looked at: for what another replica wrote, and for what is due. */
  pollMs?: number;
  /** How long after a CA was made known it may sign. All replicas and API servers must have learned of it by then. */
  propagationMs?: number;
  /** ms since the epoch */
  now?: () => number;
}

/** A certificate that is always valid, shared with all replicas by a Secret. */
export interface ServingCertificate {
  /** All CAs that a client has to trust, as PEM. */
  readonly caBundle: string;
  /** For `https.createServer` and `server.setSecureContext`. */
  readonly secureContext: { cert: string; key: string };
  /**
   * Secrets that only the replicas know. The first is the current one, handed to clients that authenticate with it.
   * They change with the CA.
   */
  readonly sharedSecrets: readonly string[];
  /**
   * Calls the listener now, and again at every change of the certificate or the bundle. One that makes the bundle known
   * must reject when it could not: it is called again, and a new CA waits for it.
   */
  follow(listener: () => void | Promise<void>): Promise<void>;
  close(): void;
}

const SECRET = { apiVersion: "v1", kind: "Secret" } as const;
const DAY_MS = 86_400_000;
const LIFETIMES: Lifetimes = { caMs: 730 * DAY_MS, servingMs: 90 * DAY_MS };
const POLL_MS = 60_000;
const PROPAGATION_MS = 5 * 60_000;
/** Losing this often against other replicas indicates another problem. */
const MAX_ATTEMPTS = 5;

/**
 * Opens the certificate of a server: takes it from the Secret, or makes it. Everything is in one Secret, so that one
 * compare-and-swap decides between replicas: who comes second takes what the first has written.
 *
 * The Secret is polled, not watched: that needs the right to read this one Secret and no other, and a certificate that is
 * renewed a month early can be known a minute late.
 *
 * @throws ApiError when the Secret can be neither read nor made
 */
export async function openServingCertificate(options: ServingCertificateOptions): Promise<ServingCertificate> {
  const { logger, pollMs = POLL_MS, propagationMs = PROPAGATION_MS, now = Date.now } = options;
  let held = await agree(options, undefined, false);
  let published: { bundle: string; at: number } | undefined;
  const listeners: (() => void | Promise<void>)[] = [];

  const publish = async () => {
    const bundle = caBundleOf(held);
    for (const listener of listeners) await listener();
    published = { bundle, at: now() };
  };
  const refresh = async () => {
    const isKnown = published?.bundle === caBundleOf(held) && now() - published.at >= propagationMs;
    const latest = await agree(options, held, isKnown);
    const changed = caBundleOf(latest) !== caBundleOf(held) || latest.serving.certificate !== held.serving.certificate;
    held = latest;
    if (changed) logger.info({ secret: options.name }, "certificate was renewed");
    if (changed || published?.bundle !== caBundleOf(held)) {
      published = undefined;
      await publish();
    }
  };

  let refreshing = false;
  const timer = setInterval(async () => {
    if (refreshing) return;
    refreshing = true;
    try {
      await refresh();
    } catch (error) {
      logger.warn({ err: error, reason: errorMessageOf(error) }, "failed to maintain the certificate");
    } finally {
      refreshing = false;
    }
  }, pollMs).unref();

  return {
    get caBundle() {
      return caBundleOf(held);
    },
    get secureContext() {
      return { cert: held.serving.certificate, key: held.serving.key };
    },
    get sharedSecrets() {
      return [held.ca, held.next].flatMap((ca) => (ca === undefined ? [] : [secretOf(ca.key)]));
    },
    async follow(listener) {
      listeners.push(listener);
      published = undefined; // the newcomer has to make the bundle known, too
      await listener();
    },
    close: () => clearInterval(timer),
  };
}

function secretOf(key: string): string {
  return createHmac("sha256", key).update("shared secret").digest("base64url");
}

/** What all replicas use: what is stored, or, when something is due, what the first of them stores. */
async function agree(
  options: ServingCertificateOptions,
  held: TlsMaterial | undefined,
  nextIsKnown: boolean,
): Promise<TlsMaterial> {
  const { client, namespace, name, dnsNames, lifetimes = LIFETIMES, now = Date.now } = options;
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const secret = await client.get(SECRET, name, namespace);
    // What was deleted or damaged is restored as it was: clients trust it.
    const stored = secret && materialOf(secret);
    const current = stored ?? held;
    const wanted = await renew(current, {
      name: `${name}-ca`,
      names: dnsNames,
      lifetimes,
      now: now(),
      // What others have written meanwhile, this replica has not made known.
      nextIsKnown: nextIsKnown && current?.next?.certificate === held?.next?.certificate,
    });
    if (wanted === stored) return stored;
    try {
      await write(client, manifestOf(wanted, namespace, name), secret);
      return wanted;
    } catch (error) {
      if (!(error instanceof ApiError && (error.status === 409 || error.notFound))) throw error;
    }
  }
  throw new RetryableError(
    "Conflict",
    `failed to write the Secret ${namespace}/${name}: another client keeps changing it`,
  );
}

async function write(
  client: ServingCertificateOptions["client"],
  manifest: Manifest & { data: Record<string, string | null> },
  previous: LiveObject | undefined,
): Promise<void> {
  if (previous === undefined) {
    const data = Object.fromEntries(Object.entries(manifest.data).filter(([, value]) => value !== null));
    await client.create({ ...manifest, data });
    return;
  }
  const { name, namespace, uid, resourceVersion } = previous.metadata;
  await client.mergePatch(SECRET, name, namespace, { metadata: { uid, resourceVersion }, data: manifest.data });
}

/** The names of the Secret's keys are those that other TLS Secrets have. */
function manifestOf(material: TlsMaterial, namespace: string, name: string) {
  const { ca, next, previous, serving } = material;
  const texts: Record<string, string | undefined> = {
    "tls.crt": serving.certificate,
    "tls.key": serving.key,
    "ca.crt": ca.certificate,
    "ca.key": ca.key,
    "next-ca.crt": next?.certificate,
    "next-ca.key": next?.key,
    "previous-ca.crt": previous,
  };
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name, namespace, labels: { "app.kubernetes.io/managed-by": "kindstack" } },
    data: Object.fromEntries(
      Object.entries(texts).map(([key, text]) => [
        key,
        text === undefined ? null : Buffer.from(text).toString("base64"),
      ]),
    ),
  };
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
  const [ca, serving, next, previous] = [pair("ca"), pair("tls"), pair("next-ca"), text("previous-ca.crt")];
  if (ca === undefined || serving === undefined) return undefined;
  const material: TlsMaterial = { ca, serving, ...(next && { next }), ...(previous !== undefined && { previous }) };
  return isUsable(material) ? material : undefined;
}
