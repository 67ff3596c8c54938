import { setMaxListeners } from "node:events";
import type { Logger } from "pino";
import type { KubernetesClient } from "../../providers/kubernetes/client";
import { type AdmissionView, CERTIFICATE_SECRET, type KindAdmission } from "../../stacks/contract/admission";
import { type AnyKind, kindName } from "../../stacks/contract/kind";
import { Informer, withoutManagedFields } from "../cache/informer";
import { openServingCertificate, type ServingCertificateOptions } from "../tls/serving-certificate";
import {
  type AdmissionLocation,
  clientConfig,
  locationNames,
  webhookConfigurations,
  webhookPath,
} from "./configuration";
import { answerConversion, applyDefinitions, conversionPath, keepDefinitions } from "./conversion";
import { EnsuredObjects } from "./ensure";
import { type AdmissionServer, type Reviewer, startAdmissionServer } from "./server";

export interface AdmissionOptions {
  kinds: readonly AnyKind[];
  client: KubernetesClient;
  logger: Logger;
  /** 0 for any free one. */
  port: number;
  /** The address that is listened on. */
  host: string;
  /** How the API server finds the operator; by default at the host and port, which suits one machine. */
  location?: AdmissionLocation;
  /** The CA of the API servers' client certificates, as PEM. With it, other clients get no answer. */
  clientCa?: string | undefined;
  /** A ClusterRole with which everything that is made for admission is deleted; without one it stays. */
  ownerRole?: string | undefined;
  /** Where the certificate's Secret is kept. */
  namespace: string;
  /** For certificates that last another time than usual. */
  certificate?: Pick<ServingCertificateOptions, "lifetimes" | "pollMs" | "propagationMs">;
}

export interface Admission {
  port: number;
  close(): Promise<void>;
}

/** The API server has given up when the answer comes later than this before its own time-out. */
const ANSWER_MARGIN_MS = 1_000;

/**
 * Serves what kinds have a say in: webhooks over HTTPS, and the cluster-wide objects that belong to them. Any number of
 * replicas may do so at the same time.
 *
 * @returns undefined when no kind has a say in anything, nor several versions: then nothing is listened to and nothing made
 */
export async function startAdmission(options: AdmissionOptions): Promise<Admission | undefined> {
  const { client, host, port, namespace } = options;
  const logger = options.logger.child({ component: "admission" });
  const kinds = options.kinds.filter(({ capabilities }) => capabilities.admission !== undefined);
  const converted = options.kinds.filter(({ capabilities }) => capabilities.versions !== undefined);
  if (kinds.length + converted.length === 0) return undefined;
  const stop = new AbortController();
  setMaxListeners(0, stop.signal); // one for each informer
  let server: AdmissionServer | undefined;
  const close = async () => {
    stop.abort();
    await server?.close();
  };
  try {
    const reviewers = new Map<string, Reviewer>();
    for (const kind of kinds) {
      const admission = kind.capabilities.admission as KindAdmission;
      const view = await openView(admission, client, logger, stop.signal);
      for (const webhook of admission.webhooks()) {
        reviewers.set(webhookPath(kind, webhook), {
          timeoutMs: webhook.timeoutSeconds * 1000 - ANSWER_MARGIN_MS,
          review: (request) => webhook.review(request, view),
        });
      }
    }
    const certificate = await openServingCertificate({
      ...options.certificate,
      client,
      namespace,
      name: CERTIFICATE_SECRET,
      dnsNames: locationNames(options.location ?? { url: urlOf(host, port) }),
      logger,
    });
    stop.signal.addEventListener("abort", () => certificate.close());
    const converters = new Map(
      converted.map((kind) => [conversionPath(kind), (review: string) => answerConversion(kind, review, logger)]),
    );
    const { clientCa } = options;
    server = await startAdmissionServer({ port, host, certificate, reviewers, converters, logger, clientCa });
    const { port: ownPort } = server;
    const location = options.location ?? { url: urlOf(host, ownPort) };

    const objects = new EnsuredObjects({
      client,
      ownerRole: options.ownerRole,
      logger,
      signal: stop.signal,
      // The webhooks first: no user gets a right, such as to create namespaces, before the webhook guards it.
      manifests: () => [
        ...kinds.flatMap((kind) =>
          webhookConfigurations(kind, location, {
            caBundle: certificate.caBundle,
            secret: certificate.sharedSecrets[0] ?? "",
          }),
        ),
        ...kinds.flatMap((kind) => kind.capabilities.admission?.objects() ?? []),
      ],
    });
    await objects.start();
    const definitions = {
      kinds: converted,
      client,
      webhook: (kind: AnyKind) => {
        const path = `${conversionPath(kind)}/${certificate.sharedSecrets[0] ?? ""}`;
        return clientConfig(location, path, certificate.caBundle);
      },
    };
    await certificate.follow(async () => {
      await objects.apply();
      await applyDefinitions(definitions);
    });
    if (converted.length > 0) void keepDefinitions(definitions, logger, stop.signal);
    logger.info({ port: ownPort, kinds: [...new Set([...kinds, ...converted])].map(kindName) }, "admission is served");
    return { port: ownPort, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Caches of the watched types, of this process alone, so that a replica serves whether or not it reconciles. */
async function openView(
  { watches }: KindAdmission,
  client: KubernetesClient,
  logger: Logger,
  signal: AbortSignal,
): Promise<AdmissionView> {
  const caches = new Map<string, Informer>();
  for (const [name, { apiVersion, kind, labelSelector, indexers, onChange, onDelete }] of Object.entries(watches)) {
    const informer = new Informer({
      client,
      type: await client.resourceType(apiVersion, kind),
      logger,
      labelSelector,
      indexers,
      transform: withoutManagedFields,
      onChange: (change) => {
        if (change.type === "deleted") onDelete?.(change.object);
        else onChange?.(change.object);
      },
    });
    caches.set(name, informer);
    void informer.start(signal);
  }
  await Promise.all([...caches.values()].map(({ synced }) => synced));
  const cache = (name: string) => {
    const found = caches.get(name);
    if (found === undefined) throw new TypeError(`nothing is watched as ${name}`);
    return found;
  };
  return {
    client,
    get: (watch, key) => cache(watch).get(key),
    byIndex: (watch, index, value) => cache(watch).byIndex(index, value),
    version: (watch) => cache(watch).resourceVersion,
  };
}

function urlOf(host: string, port: number): string {
  return `https://${host.includes(":") ? `[${host}]` : host}:${port}`;
}
