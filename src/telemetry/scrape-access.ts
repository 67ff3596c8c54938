import { hash } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { Logger } from "pino";
import { reviewAccess } from "../../providers/kubernetes/access-review";
import { ApiError, type KubernetesClient } from "../../providers/kubernetes/client";
import { FairLimit } from "../http/fair-limit";
import type { Identity } from "../http/identity";
import { Refusal } from "../http/refusal";
import { TokenReviews } from "../http/token-reviews";

/** `unknown` when the API server cannot be asked. */
export type Verdict = "allowed" | "unauthenticated" | "forbidden" | "unknown";

/** How long a verdict on a user holds. Refusals expire sooner, as the right may be granted soon. */
const LIFETIME_MS = { allowed: 60_000, forbidden: 10_000 };
const MAX_VERDICTS = 1_000;
/** The limit of concurrent reviews, so that strangers do not load the API server. Addresses take turns. */
const MAX_REVIEWS = 8;

/**
 * Decides who may read the metrics or the console, as a cluster's components do: the bearer token is reviewed (TokenReview),
 * and its user must have the right to `get` the non-resource URL `path` (SubjectAccessReview), which the ClusterRoles
 * `kindstack-metrics-reader` and `kindstack-console-reader` give. Verdicts on users are remembered for a short time.
 */
export function scrapeAccess(client: Pick<KubernetesClient, "json">, logger: Pick<Logger, "warn">) {
  const reviews = new TokenReviews({ client, maxReviews: MAX_REVIEWS });
  const limit = new FairLimit(MAX_REVIEWS);
  const verdicts = new LRUCache<string, "allowed" | "forbidden", { user: Identity; path: string; address: string }>({
    max: MAX_VERDICTS,
    async fetchMethod(_digest, _stale, { context: { user, path, address }, options }) {
      const right = { nonResourceAttributes: { path, verb: "get" } };
      const isAllowed = await limit.run(address, () => reviewAccess(client, user, right));
      const verdict = isAllowed ? "allowed" : "forbidden";
      options.ttl = LIFETIME_MS[verdict];
      return verdict;
    },
  });

  return async (path: string, authorization: string | undefined, address: string): Promise<Verdict> => {
    const token = tokenOf(authorization);
    if (token === undefined) return "unauthenticated";
    try {
      const user = await reviews.identityOf(token, address);
      if (user === undefined) return "unauthenticated";
      const digest = hash("sha256", JSON.stringify([path, user]), "base64");
      return (await verdicts.fetch(digest, { context: { user, path, address } })) ?? "unknown";
    } catch (error) {
      const cause = error instanceof Refusal ? error.cause : error;
      if (!(cause instanceof ApiError)) throw error;
      logger.warn({ err: cause, path }, "cannot ask the API server who may read this");
      return "unknown";
    }
  };
}

/** The token of a `Bearer` header, or the password of a `Basic` header, for which browsers prompt. */
function tokenOf(authorization = ""): string | undefined {
  const [, scheme, text = ""] = /^(Bearer|Basic) ([\x21-\x7e]+)$/i.exec(authorization) ?? [];
  if (scheme?.toLowerCase() !== "basic") return text || undefined;
  return /^[^:]*:([\x21-\x7e]+)$/.exec(Buffer.from(text, "base64").toString("latin1"))?.[1];
}
