import http from "node:http";
import https from "node:https";
import { closeAtOnce, listenAt } from "../http/listen";
import type { ServedCertificate } from "./certificate";

/** What is sent back. */
export interface Answer {
  status: number;
  contentType?: string;
  headers?: Record<string, string>;
  body: string;
}

export interface ListenerOptions {
  /** 0 for any free port. */
  port: number;
  host: string;
  /** With it TLS is spoken and nothing else. */
  tls?: ServedCertificate;
  /** Answers a request without a body. What it throws is passed to `failed` only. */
  respond(request: http.IncomingMessage): Promise<Answer>;
  failed(error: unknown): void;
}

export interface Listener {
  port: number;
  close(): Promise<void>;
}

/** Limits for any client: headers of this size, this long to send them, this many connections. */
const LIMITS = {
  maxHeaderSize: 16 * 1024,
  headersTimeout: 5_000,
  requestTimeout: 10_000,
  connectionsCheckingInterval: 1_000,
  keepAliveTimeout: 60_000,
} as const;
const MAX_CONNECTIONS = 100;
const MAX_REQUESTS_PER_CONNECTION = 1_000;
const HANDSHAKE_TIMEOUT_MS = 5_000;

/** Serves short answers to `GET` and `HEAD`, within limits that no client can exceed. */
export async function listen({ port, host, tls, respond, failed }: ListenerOptions): Promise<Listener> {
  const onRequest = (request: http.IncomingMessage, response: http.ServerResponse) =>
    void answer(respond, failed, request, response);
  const server = tls === undefined ? http.createServer(LIMITS, onRequest) : await createTlsServer(tls, onRequest);
  server.maxConnections = MAX_CONNECTIONS;
  server.maxRequestsPerSocket = MAX_REQUESTS_PER_CONNECTION;
  return { port: await listenAt(server, { port, host }), close: () => closeAtOnce(server) };
}

async function createTlsServer(tls: ServedCertificate, onRequest: http.RequestListener): Promise<https.Server> {
  const server = https.createServer(
    { ...LIMITS, handshakeTimeout: HANDSHAKE_TIMEOUT_MS, minVersion: "TLSv1.2" },
    onRequest,
  );
  await tls.follow(() => server.setSecureContext({ ...tls.secureContext, minVersion: "TLSv1.2" }));
  return server;
}

async function answer(
  respond: ListenerOptions["respond"],
  failed: ListenerOptions["failed"],
  request: http.IncomingMessage,
  response: http.ServerResponse,
): Promise<void> {
  const { status, contentType, headers, body } = await answerTo(respond, request).catch((error: unknown): Answer => {
    failed(error);
    return { status: 500, body: "internal error\n" };
  });
  response.writeHead(status, {
    "content-type": contentType ?? "text/plain; charset=utf-8",
    "content-length": Buffer.byteLength(body),
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    ...headers,
  });
  response.end(request.method === "HEAD" ? undefined : body);
}

async function answerTo(respond: ListenerOptions["respond"], request: http.IncomingMessage): Promise<Answer> {
  const { method, headers } = request;
  if (method !== "GET" && method !== "HEAD") {
    return { status: 405, headers: { allow: "GET, HEAD", connection: "close" }, body: "method not allowed\n" };
  }
  const hasBody = headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
  if (hasBody) return { status: 413, headers: { connection: "close" }, body: "a body is not accepted\n" };
  return respond(request);
}
