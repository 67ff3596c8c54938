import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import https from "node:https";
import type { Logger } from "pino";
import { ClassifiedError, errorMessageOf } from "../../providers/errors";
import type { AdmissionRequest, Decision } from "../../stacks/contract/admission";
import { type Flight, readBody } from "../http/body";
import { ConnectionLimit } from "../http/connection-limit";
import { listenAt } from "../http/listen";
import { Refusal } from "../http/refusal";
import type { ServingCertificate } from "../tls/serving-certificate";
import { parseReview, reviewAnswer } from "./review";

/** Who decides about the requests that are sent to a path. */
export interface Reviewer {
  /** In ms: what is not decided by then is refused. Shorter than the API server waits. */
  timeoutMs: number;
  review(request: AdmissionRequest): Decision | Promise<Decision>;
}

export interface AdmissionServerOptions {
  /** 0 for any free port. */
  port: number;
  host: string;
  certificate: ServingCertificate;
  /** The CA of the clients' certificates, as PEM. With it, clients without a certificate of this CA are disconnected. */
  clientCa?: string | undefined;
  /** By path, without the secret at its end. */
  reviewers: ReadonlyMap<string, Reviewer>;
  /** Who answers ConversionReviews, likewise. @throws Refusal */
  converters?: ReadonlyMap<string, (review: string) => object>;
  logger: Logger;
}

export interface AdmissionServer {
  port: number;
  close(): Promise<void>;
}

/** A review holds an object of at most 3 MiB, as the API server accepts it, before and after. */
export const MAX_REVIEW_BYTES = 8 * 1024 * 1024;
/** A conversion is of all objects of a list. */
const MAX_CONVERSION_BYTES = 32 * 1024 * 1024;
const MAX_CONNECTIONS = 512;
/** Of all connections together: what is read at the same time. */
const MAX_BYTES_IN_FLIGHT = 64 * 1024 * 1024;
const BODY_TIMEOUT_MS = 10_000;
const HEADERS_TIMEOUT_MS = 5_000;
/** The API server closes connections that it no longer needs; it must not find them closed when it needs them. */
const KEEP_ALIVE_MS = 180_000;
const CLOSING_MS = 5_000;

/** Answers AdmissionReviews over HTTPS, with whatever certificate is valid at the time. */
export async function startAdmissionServer(options: AdmissionServerOptions): Promise<AdmissionServer> {
  const { certificate, clientCa, logger } = options;
  const flight: Flight = { bytes: 0, maxBytes: MAX_BYTES_IN_FLIGHT };
  const secrets = new SecretSet(() => certificate.sharedSecrets);
  const context = () => ({
    ...certificate.secureContext,
    ...(clientCa !== undefined && { ca: clientCa, requestCert: true, rejectUnauthorized: true }),
  });
  const server = https.createServer(
    {
      ...context(),
      minVersion: "TLSv1.2",
      handshakeTimeout: HEADERS_TIMEOUT_MS,
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: BODY_TIMEOUT_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
      connectionsCheckingInterval: 1_000,
    },
    (request, response) => {
      // Only the API server has been told the whole path; to others, nothing is there.
      const path = pathOf(request, (secret) => secrets.has(secret));
      if (path !== undefined) limit.recognize(request.socket);
      void respond(options, flight, path, request, response);
    },
  );
  const limit = new ConnectionLimit(server, MAX_CONNECTIONS);
  server.on("tlsClientError", (error) => logger.debug({ err: error }, "TLS handshake failed"));
  server.on("clientError", (_error, socket) => socket.destroy());
  const port = await listenAt(server, options);
  await certificate.follow(() => server.setSecureContext(context()));
  return {
    port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeIdleConnections();
        setTimeout(() => server.closeAllConnections(), CLOSING_MS).unref();
      }),
  };
}

/** The secrets that are valid or were while this process ran: the API server learns of a new one a moment later. */
class SecretSet {
  readonly #current: () => readonly string[];
  readonly #known = new Set<string>();

  constructor(current: () => readonly string[]) {
    this.#current = current;
  }

  has(text: string): boolean {
    for (const secret of this.#current()) this.#known.add(secret);
    const digest = digestOf(text);
    return [...this.#known].some((secret) => timingSafeEqual(digestOf(secret), digest));
  }
}

function digestOf(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

/** The path of a request that ends with a secret, without it. */
function pathOf({ url = "" }: IncomingMessage, isSecret: (text: string) => boolean): string | undefined {
  const [path = ""] = url.split("?");
  const end = path.lastIndexOf("/");
  return isSecret(path.slice(end + 1)) ? path.slice(0, end) : undefined;
}

interface Reply {
  status: number;
  body: string | object;
}

async function respond(
  options: AdmissionServerOptions,
  flight: Flight,
  path: string | undefined,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const answer = await answerTo(options, flight, path, request).catch((error: unknown): Reply => {
    if (error instanceof Refusal) return { status: error.code, body: error.message };
    options.logger.error({ err: error, path: request.url }, "review failed");
    return { status: 500, body: "internal error" };
  });
  if (response.destroyed) return;
  const isText = typeof answer.body === "string";
  const body = isText ? `${answer.body}\n` : JSON.stringify(answer.body);
  // What was not read to its end cannot be followed by another request.
  if (!request.complete) response.setHeader("connection", "close");
  if (answer.status === 405) response.setHeader("allow", "POST");
  response.writeHead(answer.status, {
    "content-type": isText ? "text/plain; charset=utf-8" : "application/json",
    "content-length": Buffer.byteLength(body),
    "x-content-type-options": "nosniff",
  });
  response.end(body, () => {
    if (!request.complete) request.destroy();
  });
}

async function answerTo(
  { reviewers, converters, logger }: AdmissionServerOptions,
  flight: Flight,
  path: string | undefined,
  request: IncomingMessage,
): Promise<Reply> {
  const reviewer = path === undefined ? undefined : reviewers.get(path);
  const convert = path === undefined ? undefined : converters?.get(path);
  if (reviewer === undefined && convert === undefined) return { status: 404, body: "not found" };
  if (request.method !== "POST") return { status: 405, body: "method not allowed" };
  if (!/^application\/json\b/.test(request.headers["content-type"] ?? "")) {
    return { status: 415, body: "the content type must be application/json" };
  }
  const body = await readBody(request, convert === undefined ? MAX_REVIEW_BYTES : MAX_CONVERSION_BYTES, flight);
  if (reviewer === undefined) return { status: 200, body: convert?.(body) ?? {} };
  const review = parseReview(body);
  const decision = await decide(reviewer, review, logger.child({ path, user: review.user.username }));
  return { status: 200, body: reviewAnswer(review.uid, decision) };
}

/** A review that fails is a refusal with its reason: the API server would show the user less. */
async function decide(reviewer: Reviewer, request: AdmissionRequest, logger: Logger): Promise<Decision> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<Decision>((resolve) => {
    timer = setTimeout(
      () => resolve({ allowed: false, code: 503, message: "the operator took too long to decide; try again" }),
      reviewer.timeoutMs,
    );
  });
  try {
    return await Promise.race([Promise.resolve(reviewer.review(request)), late]);
  } catch (error) {
    logger.warn({ err: error, reason: errorMessageOf(error) }, "could not decide about a request");
    const reason = error instanceof ClassifiedError ? error.message : "internal error";
    return { allowed: false, code: 503, message: `the operator could not decide: ${reason}` };
  } finally {
    clearTimeout(timer);
  }
}
