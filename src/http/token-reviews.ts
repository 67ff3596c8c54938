import { hash } from "node:crypto";
import { LRUCache } from "lru-cache";
import { reviewToken } from "../../providers/kubernetes/access-review";
import type { KubernetesClient } from "../../providers/kubernetes/client";
import { FairLimit } from "./fair-limit";
import { type Identity, reviewedIdentity } from "./identity";
import { Refusal } from "./refusal";

/** How long the answer of a TokenReview is cached: as in Kubernetes' own delegated authentication. */
const TTL_MS = 10_000;
const MAX_TOKENS = 4096;
/** Longer than tokens with hundreds of groups are. Longer ones are rejected without a TokenReview. */
const MAX_TOKEN_LENGTH = 16_384;

interface TokenReviewOptions {
  client: Pick<KubernetesClient, "json">;
  observe?: ((review: "authenticated" | "refused" | "failed") => void) | undefined;
  /** So many tokens are asked about at the same time; others wait, and addresses take turns. */
  maxReviews?: number;
}

/** The users of bearer tokens, as the API server reviews them. Answers are cached by the token's digest: memory holds no token. */
export class TokenReviews {
  /** Concurrent requests share one review. */
  readonly #identities: LRUCache<string, Identity, { token: string; address: string }>;
  /** Rejected tokens, in a cache of their own: they must not evict valid tokens. */
  readonly #refused = new LRUCache<string, true>({ max: MAX_TOKENS, ttl: TTL_MS });

  constructor({ client, observe, maxReviews = 32 }: TokenReviewOptions) {
    const limit = new FairLimit(maxReviews);
    const review = async (token: string): Promise<Identity | undefined> => {
      const user = await reviewToken(client, token).catch((cause: unknown) => {
        observe?.("failed");
        const message = "your token could not be reviewed: try again later";
        throw new Refusal(503, "ServiceUnavailable", message, { cause });
      });
      const identity = user && reviewedIdentity(user);
      observe?.(identity === undefined ? "refused" : "authenticated");
      return identity;
    };
    this.#identities = new LRUCache({
      max: MAX_TOKENS,
      ttl: TTL_MS,
      fetchMethod: (_digest, _stale, { context: { token, address } }) => limit.run(address, () => review(token)),
    });
  }

  /** @returns `undefined` for a token of no user @throws Refusal 503 when the API server could not be asked */
  async identityOf(token: string, address: string): Promise<Identity | undefined> {
    if (token.length > MAX_TOKEN_LENGTH) return undefined;
    const digest = hash("sha256", token, "base64");
    if (this.#refused.has(digest)) return undefined;
    const identity = await this.#identities.fetch(digest, { context: { token, address } });
    if (identity === undefined) this.#refused.set(digest, true);
    return identity;
  }
}
