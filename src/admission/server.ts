import type { IncomingMessage } from "node:http";
import { setImmediate } from "node:timers/promises";
import type { TLSSocket } from "node:tls";
import type { Logger } from "pino";
import { withUnhandled } from "../automation/unhandled";
import { type Answer, readBody, sendAnswer } from "../http/answer";
import { ConnectionLimit, clientOf } from "../http/connection-limit";
import { FairLimit } from "../http/fair-limit";
import { Flight } from "../http/flight";
import { Refusal } from "../http/refusal";
import { type Address, createTlsServer, type Listener, listenAt } from "../http/server";
import type { ServedCertificate } from "../tls/served-certificate";

/** What answers the reviews that are sent to a path. */
export interface ReviewHandler {
  maxBytes: number;
  /** Whether it is asked without a client certificate in any case: API servers show none for conversions. */
  isOpen?: true;
  /** @throws Refusal for a body that is no review */
  answer(body: string): object | Promise<object>;
}

export interface AdmissionServerOptions extends Address {
  certificate: ServedCertificate;
  /** The CA of the clients' certificates, as PEM. With it, clients without a certificate of this CA get no review. */
  clientCa?: string | undefined;
  /** By path. */
  handlers: ReadonlyMap<string, ReviewHandler>;
  logger: Logger;
}

/** An API server has one for each review under way. */
const MAX_CONNECTIONS = 1_024;
/** Of the bodies that are read or wait for their turn. */
const MAX_BYTES_IN_FLIGHT = 128 * 1024 * 1024;
const BODY_TIMEOUT_MS = 10_000;
/** Longer than the API server keeps idle connections: the API server closes them first, and never writes to a closed one. */
const KEEP_ALIVE_MS = 180_000;
const CLOSING_MS = 5_000;

/**
 * Answers the API server's reviews over HTTPS.
 *
 * An API server sends no credential but a client certificate, if it is configured with one. Without one, every
 * client that reaches the port is answered: a review must have no effect, and what it costs is shared fairly between addresses.
 */
export async function startAdmissionServer(options: AdmissionServerOptions): Promise<Listener> {
  const { certificate, clientCa, handlers, logger } = options;
  const flight = new Flight(MAX_BYTES_IN_FLIGHT);
  const turns = new FairLimit(1);
  const isSomeOpen = [...handlers.values()].some(({ isOpen }) => isOpen);

  async function answerTo(request: IncomingMessage): Promise<Answer> {
    const [path = ""] = (request.url ?? "").split("?");
    const handler = handlers.get(path);
    if (clientCa !== undefined && !handler?.isOpen && !(request.socket as TLSSocket).authorized) {
      return { status: 401, body: "a client certificate of an API server is needed\n" };
    }
    if (handler === undefined) return { status: 404, body: "not found\n" };
    if (request.method !== "POST") return { status: 405, headers: { allow: "POST" }, body: "method not allowed\n" };
    if (!/^application\/json\b/.test(request.headers["content-type"] ?? "")) {
      return { status: 415, body: "the content type must be application/json\n" };
    }
    const body = await readInTurn(request, handler.maxBytes);
    const unhandled = (error: unknown) =>
      logger.error({ err: error, path }, "unhandled error in the work for a review");
    return { status: 200, body: await withUnhandled(unhandled, () => handler.answer(body)) };
  }

  /** Between two reviews, the event loop does what else there is. */
  async function readInTurn(request: IncomingMessage, maxBytes: number): Promise<string> {
    try {
      const body = await readBody(request, maxBytes, flight);
      await turns.run(clientOf(request), () => setImmediate());
      return body;
    } finally {
      flight.end(request);
    }
  }

  const server = await createTlsServer(certificate, {
    requestTimeout: BODY_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    ...(clientCa !== undefined && { ca: clientCa, requestCert: true, rejectUnauthorized: !isSomeOpen }),
  });
  const limit = new ConnectionLimit(server, { max: MAX_CONNECTIONS }, async (request, response) => {
    const answer = await answerTo(request).catch((error: unknown): Answer => {
      if (error instanceof Refusal) return { status: error.code, body: `${error.message}\n` };
      logger[response.destroyed ? "debug" : "error"]({ err: error, path: request.url }, "review failed");
      return { status: 500, body: "internal error\n" };
    });
    // A connection that carries reviews outlasts those that carry nothing.
    if (answer.status === 200) limit.recognize(request.socket, ownerOf(request.socket as TLSSocket));
    sendAnswer(response, answer);
  });
  server.on("secureConnection", (socket: TLSSocket) => {
    if (socket.authorized) limit.recognize(socket, ownerOf(socket));
  });
  server.on("tlsClientError", (error) => logger.debug({ err: error }, "TLS handshake failed"));
  server.on("clientError", (_error, socket) => socket.destroy());
  return listenAt(limit, options, CLOSING_MS);
}

/** Whose connection it is, as far as that can be known. */
function ownerOf({ authorized, remoteAddress = "" }: TLSSocket): string {
  return authorized ? "API server" : remoteAddress;
}
