import { setMaxListeners } from "node:events";
import type { Logger } from "pino";
import type { KubernetesClient, LiveObject } from "../../providers/kubernetes/client";
import { type AdmissionView, CERTIFICATE_SECRET, type KindAdmission } from "../../stacks/contract/admission";
import { type AnyKind, kindName } from "../../stacks/contract/kind";
import { kindOf } from "../../stacks/contract/kind-name";
import { OBJECT_ADMISSION, objectAdmission } from "../../stacks/contract/object-admission";
import { watchEvents, withoutManagedFields } from "../cache/change";
import { Informer } from "../cache/informer";
import { EventRecorder } from "../controller/event-recorder";
import { type Address, hostPort, type Listener } from "../http/server";
import { openServingCertificate, type ServingCertificateOptions } from "../tls/serving-certificate";
import {
  type AdmissionLocation,
  clientConfig,
  locationNames,
  type NamedAdmission,
  webhookConfigurations,
  webhookPath,
} from "./configuration";
import { answerConversion, conversionPath, ensureConversion, keepConversion, MAX_CONVERSION_BYTES } from "./conversion";
import { EnsuredObjects } from "./ensure";
import { answerReview, MAX_REVIEW_BYTES, type Reviewer } from "./review";
import { type ReviewHandler, startAdmissionServer } from "./server";

export interface AdmissionOptions extends Address {
  kinds: readonly AnyKind[];
  client: KubernetesClient;
  logger: Logger;
  /** How the API server reaches the operator; by default at the host and port, for a single machine. */
  location?: AdmissionLocation;
  /** The CA of the API servers' client certificates, as PEM. With it, other clients get no answer. */
  clientCa?: string | undefined;
  /** The ClusterRole that owns all admission objects: deleting the role deletes them. Without it, they stay. */
  ownerRole?: string | undefined;
  /** Where the certificate's Secret is kept. */
  namespace: string;
  /** Overrides lifetimes and intervals of the certificate. */
  certificate?: Pick<ServingCertificateOptions, "lifetimes" | "pollMs" | "propagationMs">;
}

/** Answers are due this long before the API server's time-out. */
const ANSWER_MARGIN_MS = 1_000;
/** At most; who follows an object ends it sooner. */
const FOLLOW_SECONDS = 60;

/**
 * Serves the kinds' admission: webhooks over HTTPS, and the cluster-wide objects that belong to them. Any number of
 * replicas may serve at the same time.
 *
 * @returns undefined when no kind has admission or several versions: then nothing is served or created
 */
export async function startAdmission(options: AdmissionOptions): Promise<Listener | undefined> {
  const { client, host, namespace, ownerRole, clientCa } = options;
  const locationAt = (port: number) => options.location ?? { url: `https://${hostPort({ host, port })}` };
  const logger = options.logger.child({ component: "admission" });
  const kinds = options.kinds.filter(({ capabilities }) => capabilities.admission !== undefined);
  const converted = options.kinds.filter(({ capabilities }) => capabilities.versions !== undefined);
  if (kinds.length + converted.length === 0) return undefined;
  const stop = new AbortController();
  const { signal } = stop;
  const admissions: NamedAdmission[] = [
    ...kinds.map((kind) => ({ name: kindName(kind), admission: kind.capabilities.admission as KindAdmission })),
    { name: OBJECT_ADMISSION, admission: objectAdmission(options.kinds) },
  ];
  setMaxListeners(0, signal); // one for each informer
  const recorder = new EventRecorder({ client, logger });
  let server: Listener | undefined;
  const close = async () => {
    stop.abort();
    await server?.close();
    await recorder.flush();
  };
  try {
    const handlers = new Map<string, ReviewHandler>();
    for (const { name, admission } of admissions) {
      const view = await openView(admission, options.kinds, { client, recorder, logger, signal });
      for (const webhook of admission.webhooks()) {
        const path = webhookPath(name, webhook);
        const timeoutMs = webhook.timeoutSeconds * 1000 - ANSWER_MARGIN_MS;
        const reviewer: Reviewer = { timeoutMs, review: (request) => webhook.review(request, view) };
        const answer = (text: string) => answerReview(reviewer, text, logger.child({ path }));
        handlers.set(path, { maxBytes: MAX_REVIEW_BYTES, answer });
      }
    }
    for (const kind of converted) {
      const answer = (text: string) => answerConversion(kind, text, logger);
      handlers.set(conversionPath(kind), { maxBytes: MAX_CONVERSION_BYTES, answer, isOpen: true });
    }
    const certificate = await openServingCertificate({
      ...options.certificate,
      client,
      namespace,
      name: CERTIFICATE_SECRET,
      dnsNames: locationNames(locationAt(options.port)),
      logger,
    });
    signal.addEventListener("abort", () => certificate.close());
    server = await startAdmissionServer({ port: options.port, host, certificate, clientCa, handlers, logger });
    const { port } = server;

    const clientOf = (path: string) => clientConfig(locationAt(port), path, certificate.caBundle);
    const objects = new EnsuredObjects({
      client,
      ownerRole,
      logger,
      signal,
      // The webhooks first: no user gets a right, such as to create namespaces, before the webhook guards it.
      manifests: () => [
        ...admissions.flatMap((one) => webhookConfigurations(one, clientOf)),
        ...admissions.flatMap(({ admission }) => admission.objects()),
      ],
    });
    const serveVersions = () => ensureConversion(client, converted, (kind) => clientOf(conversionPath(kind)));
    await certificate.follow(async () => {
      await objects.apply();
      await serveVersions();
    });
    await objects.watch();
    if (converted.length > 0) void keepConversion(serveVersions, logger, signal);
    logger.info({ port, kinds: [...new Set([...kinds, ...converted])].map(kindName) }, "admission is served");
    return { port, close };
  } catch (error) {
    await close();
    throw error;
  }
}

interface ViewOptions {
  client: KubernetesClient;
  recorder: EventRecorder;
  logger: Logger;
  signal: AbortSignal;
}

/** The caches of the watched types belong to admission alone: a replica serves reviews whether or not it reconciles. */
async function openView(
  { watches }: KindAdmission,
  kinds: readonly AnyKind[],
  { client, recorder, logger, signal }: ViewOptions,
): Promise<AdmissionView> {
  const caches = new Map<string, Informer>();
  const cache = (name: string) => {
    const found = caches.get(name);
    if (found === undefined && !watches[name]?.isOtherKind) throw new TypeError(`nothing is watched as ${name}`);
    return found;
  };
  const view: AdmissionView = {
    client,
    get: (watch, key) => cache(watch)?.get(key),
    byIndex: (watch, index, value) => cache(watch)?.byIndex(index, value) ?? [],
    version: (watch) => cache(watch)?.resourceVersion ?? "0",
    follow: (object, signal) => follow(client, object, signal),
    warn: (object, reason, message) => recorder.event(object, "Warning", reason, message),
  };
  for (const [name, { apiVersion, kind, isOtherKind, onChange, onDelete, ...selection }] of Object.entries(watches)) {
    if (isOtherKind && kindOf(kinds, { apiVersion, kind }) === undefined) continue;
    const informer = new Informer({
      transform: withoutManagedFields,
      ...selection,
      client,
      type: await client.resourceType(apiVersion, kind),
      logger,
      onChange: ({ type, object }) => (type === "deleted" ? onDelete : onChange)?.(object, view),
    });
    caches.set(name, informer);
  }
  for (const informer of caches.values()) void informer.start(signal);
  await Promise.all([...caches.values()].map(({ synced }) => synced));
  return view;
}

async function follow(
  client: KubernetesClient,
  object: LiveObject,
  signal: AbortSignal,
): Promise<AsyncIterable<LiveObject>> {
  const { name, namespace, resourceVersion } = object.metadata;
  const chunks = await client.watch(object, {
    namespace,
    fieldSelector: `metadata.name=${name}`,
    resourceVersion,
    timeoutSeconds: FOLLOW_SECONDS,
    signal,
  });
  return (async function* () {
    for await (const events of watchEvents(chunks)) {
      for (const event of events) {
        if (event.type === "ADDED" || event.type === "MODIFIED") yield event.object;
        else if (event.type !== "BOOKMARK") return;
      }
    }
  })();
}
