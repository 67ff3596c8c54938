import { hash } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { Logger } from "pino";
import { reviewAccess, reviewToken } from "../../providers/kubernetes/access-review";
import { ApiError, type KubernetesClient } from "../../providers/kubernetes/client";
import { FairLimit } from "../http/fair-limit";
import { Refusal } from "../http/refusal";

/** `unknown` when the API server cannot be asked. */
export type Verdict = "allowed" | "unauthenticated" | "forbidden" | "unknown";

/** How long a verdict holds. Refusals expire sooner, as the right may be granted soon. */
const LIFETIME_MS = { allowed: 60_000, forbidden: 10_000, unauthenticated: 10_000 };
const MAX_VERDICTS = 1_000;
/** Concurrent reviews, so that invented tokens do not load the API server; others wait, those of each address for themselves. */
const MAX_REVIEWS = 8;
const MAX_WAITING = 50;
/** Longer than any token of a service account. */
const MAX_TOKEN_LENGTH = 8_192;

/**
 * Decides who may read the metrics or the console, as a cluster's components do: the bearer token is reviewed (TokenReview),
 * and its user must have the right to `get` the non-resource URL `path` (SubjectAccessReview), which the ClusterRoles
 * `kindstack-metrics-reader` and `kindstack-console-reader` give. Verdicts are remembered for a short time, by a digest of the token.
 *
 * @returns the verdict by the `Authorization` header and the address that it came from
 */
export function scrapeAccess(
  path: string,
  client: Pick<KubernetesClient, "json">,
  logger: Pick<Logger, "warn">,
): (authorization: string | undefined, address: string) => Promise<Verdict> {
  const ask = async (token: string): Promise<Exclude<Verdict, "unknown">> => {
    const user = await reviewToken(client, token);
    if (user === undefined) return "unauthenticated";
    const right = { nonResourceAttributes: { path, verb: "get" } };
    return (await reviewAccess(client, user, right)) ? "allowed" : "forbidden";
  };
  const limit = new FairLimit(MAX_REVIEWS, MAX_WAITING);
  const verdicts = new LRUCache<string, Verdict, { token: string; address: string }>({
    max: MAX_VERDICTS,
    async fetchMethod(_digest, _stale, { context: { token, address }, options }) {
      try {
        const verdict = await limit.run(address, () => ask(token));
        options.ttl = LIFETIME_MS[verdict];
        return verdict;
      } catch (error) {
        if (error instanceof Refusal) return undefined;
        if (!(error instanceof ApiError)) throw error;
        logger.warn({ err: error, path }, "cannot ask the API server who may read this");
        return undefined;
      }
    },
  });

  return async (authorization, address) => {
    const token = tokenOf(authorization);
    if (token === undefined || token.length > MAX_TOKEN_LENGTH) return "unauthenticated";
    const digest = hash("sha256", token, "base64");
    return (await verdicts.fetch(digest, { context: { token, address } })) ?? "unknown";
  };
}

/** The token of a `Bearer` header; or of a `Basic` one, which is what browsers ask for, as its password. */
function tokenOf(authorization = ""): string | undefined {
  const [, scheme, text = ""] = /^(Bearer|Basic) ([\x21-\x7e]+)$/i.exec(authorization) ?? [];
  if (scheme?.toLowerCase() !== "basic") return text || undefined;
  return /^[^:]*:([\x21-\x7e]+)$/.exec(Buffer.from(text, "base64").toString("latin1"))?.[1];
}
