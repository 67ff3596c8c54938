import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { TLSSocket } from "node:tls";
import { LRUCache } from "lru-cache";
import pLimit from "p-limit";
import { reviewToken, type UserInfo } from "../../providers/kubernetes/access-review";
import type { KubernetesClient } from "../../providers/kubernetes/client";
import { Refusal } from "../http/refusal";
import { certificateIdentity, type Identity, reviewedIdentity } from "./identity";

export interface AuthenticatorOptions {
  client: Pick<KubernetesClient, "json">;
  observe?: (review: "authenticated" | "refused" | "failed") => void;
}

/** How long the answer of a TokenReview is believed: as long as the API server's own delegates believe it. */
const TOKEN_TTL_MS = 10_000;
const MAX_TOKENS = 4096;
/** Longer than tokens with hundreds of groups are. Longer ones are rejected without a TokenReview. */
const MAX_TOKEN_LENGTH = 16_384;
/** Tokens that the API server is asked about at the same time; others wait for their turn. */
const MAX_REVIEWS = 32;

/**
 * Tells who sent a request: by the client certificate that the TLS listener verified, or else by a bearer token, which
 * the API server reviews.
 */
export class Authenticator {
  readonly #options: AuthenticatorOptions;
  /** By the digest of the token, so that memory holds none. Answers are shared by requests that come at once. */
  readonly #reviews: LRUCache<string, { identity: Identity | undefined }, string>;
  /** Rejected tokens, by digest: kept apart, so that they do not evict valid ones. */
  readonly #refused: LRUCache<string, true>;
  readonly #limit = pLimit(MAX_REVIEWS);
  readonly #certificates = new WeakMap<TLSSocket, { identity: Identity | undefined; notAfter: number }>();

  constructor(options: AuthenticatorOptions) {
    this.#options = options;
    this.#refused = new LRUCache({ max: MAX_TOKENS, ttl: TOKEN_TTL_MS });
    this.#reviews = new LRUCache({
      max: MAX_TOKENS,
      ttl: TOKEN_TTL_MS,
      fetchMethod: async (_digest, _stale, { context: token }) => ({
        identity: await this.#limit(() => this.#review(token)),
      }),
    });
  }

  /** @throws Refusal 401 for an unknown user, 503 when the API server could not be asked */
  async authenticate(request: IncomingMessage): Promise<Identity> {
    const byCertificate = this.#ofCertificate(request.socket as TLSSocket);
    if (byCertificate !== undefined) return byCertificate;
    const token = /^Bearer +(\S+)$/i.exec(request.headers.authorization ?? "")?.[1];
    const identity = token && token.length <= MAX_TOKEN_LENGTH && (await this.#ofToken(token));
    if (!identity) throw new Refusal(401, "Unauthorized", "Unauthorized");
    return identity;
  }

  async #ofToken(token: string): Promise<Identity | undefined> {
    const digest = digestOf(token);
    if (this.#refused.has(digest)) return undefined;
    const review = await this.#reviews.fetch(digest, { context: token });
    if (review?.identity !== undefined) return review.identity;
    this.#reviews.delete(digest);
    this.#refused.set(digest, true);
    return undefined;
  }

  /** A connection may outlive the certificate that it began with. */
  #ofCertificate(socket: TLSSocket): Identity | undefined {
    if (!socket.authorized) return undefined;
    let known = this.#certificates.get(socket);
    if (known === undefined) {
      const certificate = socket.getPeerX509Certificate();
      if (certificate === undefined) return undefined;
      const identity = certificateIdentity(certificate.raw, certificate.fingerprint256.replaceAll(":", ""));
      known = { identity, notAfter: Date.parse(certificate.validTo) };
      this.#certificates.set(socket, known);
    }
    return Date.now() < known.notAfter ? known.identity : undefined;
  }

  async #review(token: string): Promise<Identity | undefined> {
    const { client, observe } = this.#options;
    let user: UserInfo | undefined;
    try {
      user = await reviewToken(client, token);
    } catch {
      observe?.("failed");
      throw new Refusal(503, "ServiceUnavailable", "your token could not be reviewed: try again later");
    }
    const identity = user && reviewedIdentity(user);
    observe?.(identity === undefined ? "refused" : "authenticated");
    return identity;
  }
}

function digestOf(token: string): string {
  return createHash("sha256").update(token).digest("base64");
}
