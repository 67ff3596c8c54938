import { setTimeout as delay } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import type { Logger } from "pino";
import Type from "typebox";
import { Compile } from "typebox/compile";
import { errorMessageOf } from "../../providers/errors";
import { type KubernetesClient, known, type Manifest } from "../../providers/kubernetes/client";
import { convertObject } from "../../stacks/contract/convert";
import { DEFINITION_TYPE, webhookClientOf } from "../../stacks/contract/crd";
import { type AnyKind, kindName } from "../../stacks/contract/kind";
import { parseBody } from "../http/body";

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

/** The path at which objects of a kind are converted. */
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

/** Applies CRDs with all versions served and with the conversion webhook. A CRD that is up to date causes no write. */
export async function applyDefinitions(
  client: Pick<KubernetesClient, "get" | "apply">,
  definitions: readonly Manifest[],
): Promise<void> {
  for (const wanted of definitions) {
    const live = await known(client.get(DEFINITION_TYPE, wanted.metadata.name ?? ""));
    if (live === undefined || !isServed(live, wanted)) await client.apply(wanted);
  }
}

/** How long an installation's own apply of a CRD may leave the other versions out of service. */
const POLL_MS = 30_000;

/** Repeats `apply`: an installation that applies its CRDs again removes the conversion webhook. */
export async function keepDefinitions(apply: () => Promise<void>, logger: Logger, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await delay(POLL_MS, undefined, { signal, ref: false }).catch(() => {});
    if (signal.aborted) return;
    await apply().catch((error: unknown) =>
      logger.warn({ err: error }, "failed to apply the conversion of a CRD, retrying"),
    );
  }
}

function isServed(live: Manifest, wanted: Manifest): boolean {
  const versionsOf = ({ spec }: Manifest) =>
    (spec as { versions: { name: string; served: boolean; storage: boolean }[] }).versions.map(
      ({ name, served, storage }) => ({ name, served, storage }),
    );
  return (
    isDeepStrictEqual(webhookClientOf(live), webhookClientOf(wanted)) &&
    isDeepStrictEqual(versionsOf(live), versionsOf(wanted))
  );
}
