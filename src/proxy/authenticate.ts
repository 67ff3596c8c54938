import { hash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { TLSSocket } from "node:tls";
import { LRUCache } from "lru-cache";
import { reviewToken, type UserInfo } from "../../providers/kubernetes/access-review";
import type { KubernetesClient } from "../../providers/kubernetes/client";
import { clientOf } from "../http/connection-limit";
import { FairLimit } from "../http/fair-limit";
import { Refusal } from "../http/refusal";
import { certificateIdentity, type Identity, reviewedIdentity } from "./identity";

/** How long the answer of a TokenReview is cached: as in Kubernetes' own delegated authentication. */
const TOKEN_TTL_MS = 10_000;
const MAX_TOKENS = 4096;
/** Longer than tokens with hundreds of groups are. Longer ones are rejected without a TokenReview. */
const MAX_TOKEN_LENGTH = 16_384;
/** Tokens that the API server is asked about at the same time; others wait, those of each address for themselves. */
const MAX_REVIEWS = 32;

/**
 * Tells who sent a request: by the client certificate that the TLS listener verified, or else by a bearer token, which
 * the API server reviews.
 */
export class Authenticator {
  /** By the digest of the token, so that memory holds none. Concurrent requests share one review. */
  readonly #reviews: LRUCache<string, Identity, { token: string; address: string }>;
  /** Rejected tokens, by digest: kept apart, so that they do not evict valid ones. */
  readonly #refused = new LRUCache<string, true>({ max: MAX_TOKENS, ttl: TOKEN_TTL_MS });

  constructor(
    private readonly client: Pick<KubernetesClient, "json">,
    private readonly observe?: (review: "authenticated" | "refused" | "failed") => void,
  ) {
    const limit = new FairLimit(MAX_REVIEWS);
    this.#reviews = new LRUCache({
      max: MAX_TOKENS,
      ttl: TOKEN_TTL_MS,
      fetchMethod: (_digest, _stale, { context: { token, address } }) => limit.run(address, () => this.#review(token)),
    });
  }

  /** @throws Refusal 401 for an unknown user, 503 when the API server could not be asked */
  async authenticate(request: IncomingMessage): Promise<Identity> {
    const token = bearerToken(request);
    const identity =
      ofCertificate(request.socket as TLSSocket) ??
      (token && token.length <= MAX_TOKEN_LENGTH && (await this.#ofToken(token, clientOf(request))));
    if (!identity) throw new Refusal(401, "Unauthorized", "Unauthorized");
    return identity;
  }

  async #ofToken(token: string, address: string): Promise<Identity | undefined> {
    const digest = hash("sha256", token, "base64");
    if (this.#refused.has(digest)) return undefined;
    const identity = await this.#reviews.fetch(digest, { context: { token, address } });
    if (identity === undefined) this.#refused.set(digest, true);
    return identity;
  }

  async #review(token: string): Promise<Identity | undefined> {
    let user: UserInfo | undefined;
    try {
      user = await reviewToken(this.client, token);
    } catch {
      this.observe?.("failed");
      throw new Refusal(503, "ServiceUnavailable", "your token could not be reviewed: try again later");
    }
    const identity = user && reviewedIdentity(user);
    this.observe?.(identity === undefined ? "refused" : "authenticated");
    return identity;
  }
}

export function bearerToken({ headers }: IncomingMessage): string | undefined {
  return /^Bearer +(\S+)$/i.exec(headers.authorization ?? "")?.[1];
}

/** The user of a verified certificate. A connection may outlive the certificate that it began with. */
function ofCertificate(socket: TLSSocket): Identity | undefined {
  const certificate = socket.authorized ? socket.getPeerX509Certificate()?.toLegacyObject() : undefined;
  if (certificate === undefined || Date.parse(certificate.valid_to) <= Date.now()) return undefined;
  return certificateIdentity(certificate);
}
