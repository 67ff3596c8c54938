import { createHash } from "node:crypto";
import { LRUCache } from "lru-cache";
import { reviewAccess, reviewToken } from "../../providers/kubernetes/access-review";
import { ApiError, type KubernetesClient } from "../../providers/kubernetes/client";

/** `unknown` when the API server cannot be asked. */
export type Verdict = "allowed" | "unauthenticated" | "forbidden" | "unknown";

export interface ScrapeAccessOptions {
  /** The non-resource URL that a user must have the right to `get`. */
  path?: string;
  client: Pick<KubernetesClient, "json">;
  log: { warn(fields: object, message: string): void };
  /** Milliseconds since any fixed time. */
  clock?: { now(): number };
}

/** How long a verdict holds. What is refused may be granted soon, and is asked for again sooner. */
const LIFETIME_MS = { allowed: 60_000, forbidden: 10_000, unauthenticated: 10_000 };
const MAX_VERDICTS = 1_000;
/** Invented tokens must not make the operator a burden for the API server. */
const MAX_QUESTIONS = 8;
/** Longer than any token of a service account. */
const MAX_TOKEN_LENGTH = 8_192;

/**
 * Decides who may read the metrics or the console, as a cluster's components do: the bearer token is reviewed (TokenReview),
 * and its user must have the right to `get` the non-resource URL (SubjectAccessReview), which the ClusterRoles
 * `kindstack-metrics-reader` and `kindstack-console-reader` give. Verdicts are remembered for a short time, by a digest of the token.
 */
export function scrapeAccess({
  path = "/metrics",
  client,
  log,
  clock = performance,
}: ScrapeAccessOptions): (authorization: string | undefined) => Promise<Verdict> {
  const right = { nonResourceAttributes: { path, verb: "get" } };
  const verdicts = new LRUCache<string, Verdict>({ max: MAX_VERDICTS, perf: clock, ttlResolution: 0 });
  const questions = new Map<string, Promise<Verdict>>();

  async function ask(token: string): Promise<Verdict> {
    try {
      const user = await reviewToken(client, token);
      if (user === undefined) return "unauthenticated";
      return (await reviewAccess(client, user, right)) ? "allowed" : "forbidden";
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      log.warn({ err: error, path }, "cannot ask the API server who may read this");
      return "unknown";
    }
  }

  return async (authorization) => {
    const token = tokenOf(authorization);
    if (token === undefined || token.length > MAX_TOKEN_LENGTH) return "unauthenticated";
    const key = createHash("sha256").update(token).digest("base64");
    const known = verdicts.get(key);
    if (known !== undefined) return known;
    let question = questions.get(key);
    if (question === undefined) {
      if (questions.size >= MAX_QUESTIONS) return "unknown";
      question = ask(token).finally(() => questions.delete(key));
      questions.set(key, question);
    }
    const verdict = await question;
    if (verdict !== "unknown") verdicts.set(key, verdict, { ttl: LIFETIME_MS[verdict] });
    return verdict;
  };
}

/** The token of a `Bearer` header; or of a `Basic` one, which is what browsers ask for, as its password. */
function tokenOf(authorization = ""): string | undefined {
  const [, scheme, text = ""] = /^(Bearer|Basic) ([\x21-\x7e]+)$/i.exec(authorization) ?? [];
  if (scheme?.toLowerCase() !== "basic") return text || undefined;
  return /^[^:]*:([\x21-\x7e]+)$/.exec(Buffer.from(text, "base64").toString("latin1"))?.[1];
}
