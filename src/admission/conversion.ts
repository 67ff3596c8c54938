import { setTimeout as delay } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import type { Logger } from "pino";
import Type from "typebox";
import { Compile } from "typebox/compile";
import { errorMessageOf } from "../../providers/errors";
import { type KubernetesClient, known, type Manifest } from "../../providers/kubernetes/client";
import { convertObject } from "../../stacks/contract/convert";
import { DEFINITION_TYPE, type WebhookClient } from "../../stacks/contract/crd";
import { type AnyKind, kindName } from "../../stacks/contract/kind";
import { parseBody } from "../http/answer";

/** One request converts all objects of a list. */
export const MAX_CONVERSION_BYTES = 32 * 1024 * 1024;

/** What is read of a ConversionReview; the API server sends more. */
const reviewSchema = Compile(
  Type.Object({
    apiVersion: Type.Literal("apiextensions.k8s.io/v1"),
    kind: Type.Literal("ConversionReview"),
    request: Type.Object({
      uid: Type.String({ minLength: 1, maxLength: 256 }),
      desiredAPIVersion: Type.String(),
      objects: Type.Array(Type.Object({ apiVersion: Type.String(), kind: Type.String(), metadata: Type.Object({}) })),
    }),
  }),
);

export function conversionPath(kind: AnyKind): string {
  return `/convert/${kindName(kind)}`;
}

/**
 * The answer to a ConversionReview: all of its objects in the version that is asked for, or why one cannot be converted.
 *
 * @throws Refusal
 */
export async function answerConversion(kind: AnyKind, text: string, logger: Logger): Promise<object> {
  const { request } = parseBody(reviewSchema, text, "a ConversionReview of apiextensions.k8s.io/v1");
  const { uid, desiredAPIVersion, objects } = request;
  const answer = (response: object) => ({
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "ConversionReview",
    response: { uid, ...response },
  });
  try {
    const convertedObjects = await Promise.all(
      objects.map((object) => convertObject(kind, object as Manifest, desiredAPIVersion)),
    );
    return answer({ convertedObjects, result: { status: "Success" } });
  } catch (error) {
    logger.warn({ err: error, kind: kindName(kind), to: desiredAPIVersion }, "failed to convert an object");
    const message = `to ${desiredAPIVersion}: ${errorMessageOf(error)}`;
    return answer({ convertedObjects: [], result: { status: "Failure", message } });
  }
}

/** Has the CRDs of kinds name their webhooks. Of a CRD this is all that an operator writes, and only where it differs. */
export async function ensureConversion(
  client: Pick<KubernetesClient, "get" | "mergePatch">,
  kinds: readonly AnyKind[],
  clientOf: (kind: AnyKind) => WebhookClient,
): Promise<void> {
  for (const kind of kinds) {
    const name = kindName(kind);
    const live = await known(client.get(DEFINITION_TYPE, name));
    if (live === undefined) continue; // it is looked for again
    const clientConfig = clientOf(kind);
    const { webhook } = (live.spec as { conversion?: { webhook?: { clientConfig?: WebhookClient } } }).conversion ?? {};
    if (isDeepStrictEqual(webhook?.clientConfig, clientConfig)) continue;
    // A webhook has a URL or a Service.
    const whole = { url: null, service: null, ...clientConfig };
    const conversion = { strategy: "Webhook", webhook: { conversionReviewVersions: ["v1"], clientConfig: whole } };
    await client.mergePatch(DEFINITION_TYPE, name, undefined, { spec: { conversion } });
  }
}

const POLL_MS = 30_000;

/** Repeats `ensure`: a client that replaces a CRD removes the webhook, and requests in other versions fail. */
export async function keepConversion(ensure: () => Promise<void>, logger: Logger, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await delay(POLL_MS, undefined, { signal, ref: false }).catch(() => {});
    if (signal.aborted) return;
    await ensure().catch((error: unknown) =>
      logger.warn({ err: error }, "failed to have a CRD name its conversion, retrying"),
    );
  }
}
