import { hash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Logger } from "pino";
import { type Answer, sendAnswer } from "../http/answer";
import { type Flight, readBody } from "../http/body";
import { ConnectionLimit } from "../http/connection-limit";
import { Refusal } from "../http/refusal";
import { type Address, createTlsServer, type Listener, listenAt } from "../http/server";
import type { ServingCertificate } from "../tls/serving-certificate";

/** What answers the reviews that are sent to a path. */
export interface ReviewHandler {
  /** Larger bodies are refused. */
  maxBytes: number;
  /** @throws Refusal for a body that is no review */
  answer(body: string): object | Promise<object>;
}

export interface AdmissionServerOptions extends Address {
  certificate: ServingCertificate;
  /** The CA of the clients' certificates, as PEM. With it, clients without a certificate of this CA are disconnected. */
  clientCa?: string | undefined;
  /** By path, without the secret at its end. */
  handlers: ReadonlyMap<string, ReviewHandler>;
  logger: Logger;
}

const MAX_CONNECTIONS = 512;
/** Maximum size of the bodies being read, over all connections. */
const MAX_BYTES_IN_FLIGHT = 64 * 1024 * 1024;
const BODY_TIMEOUT_MS = 10_000;
/** Long, so that the API server closes idle connections and never uses one that is closed. */
const KEEP_ALIVE_MS = 180_000;
const CLOSING_MS = 5_000;

/** Answers the API server's reviews over HTTPS. */
export async function startAdmissionServer(options: AdmissionServerOptions): Promise<Listener> {
  const { certificate, clientCa, handlers, logger } = options;
  const flight: Flight = { bytes: 0, maxBytes: MAX_BYTES_IN_FLIGHT };
  const isSecret = secretCheck(certificate);
  const server = await createTlsServer(
    certificate,
    {
      requestTimeout: BODY_TIMEOUT_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
      ...(clientCa !== undefined && { ca: clientCa, requestCert: true, rejectUnauthorized: true }),
    },
    async (request, response) => {
      // Only the API server has been told the whole path; to others, nothing is there.
      const path = pathOf(request, isSecret);
      if (path !== undefined) limit.recognize(request.socket);
      const answer = await answerTo(request, handlers.get(path ?? ""), flight).catch((error: unknown): Answer => {
        if (error instanceof Refusal) return { status: error.code, body: `${error.message}\n` };
        logger.error({ err: error, path: request.url }, "review failed");
        return { status: 500, body: "internal error\n" };
      });
      sendAnswer(response, answer);
    },
  );
  const limit = new ConnectionLimit(server, MAX_CONNECTIONS);
  server.on("tlsClientError", (error) => logger.debug({ err: error }, "TLS handshake failed"));
  server.on("clientError", (_error, socket) => socket.destroy());
  return listenAt(server, options, CLOSING_MS);
}

/** Tells the secrets that are valid or were while this server ran: the API server learns of a new one a moment later. */
function secretCheck(certificate: Pick<ServingCertificate, "sharedSecrets">): (text: string) => boolean {
  const known = new Set<string>();
  return (text) => {
    for (const secret of certificate.sharedSecrets) known.add(secret);
    const digest = hash("sha256", text, "buffer");
    return [...known].some((secret) => timingSafeEqual(hash("sha256", secret, "buffer"), digest));
  };
}

/** The path of a request that ends with a secret, without it. */
function pathOf({ url = "" }: IncomingMessage, isSecret: (text: string) => boolean): string | undefined {
  const [path = ""] = url.split("?");
  const end = path.lastIndexOf("/");
  return isSecret(path.slice(end + 1)) ? path.slice(0, end) : undefined;
}

async function answerTo(request: IncomingMessage, handler: ReviewHandler | undefined, flight: Flight): Promise<Answer> {
  if (handler === undefined) return { status: 404, body: "not found\n" };
  if (request.method !== "POST") return { status: 405, headers: { allow: "POST" }, body: "method not allowed\n" };
  if (!/^application\/json\b/.test(request.headers["content-type"] ?? "")) {
    return { status: 415, body: "the content type must be application/json\n" };
  }
  return { status: 200, body: await handler.answer(await readBody(request, handler.maxBytes, flight)) };
}
