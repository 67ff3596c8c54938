import http from "node:http";
import { type Answer, sendAnswer } from "../http/answer";
import { type Address, createTlsServer, LIMITS, type Listener, listenAt } from "../http/server";
import type { ServedCertificate } from "./certificate";

export interface ListenerOptions extends Address {
  /** With it TLS is spoken and nothing else. */
  tls?: ServedCertificate;
  /** Answers a request without a body. What it throws is passed to `failed` only. */
  respond(request: http.IncomingMessage): Promise<Answer>;
  failed(error: unknown): void;
}

const TIMEOUTS = { requestTimeout: 10_000, keepAliveTimeout: 60_000 };
const MAX_CONNECTIONS = 100;
const MAX_REQUESTS_PER_CONNECTION = 1_000;

/** Serves short answers to `GET` and `HEAD`, within limits that no client can exceed. */
export async function listen({ tls, respond, failed, ...address }: ListenerOptions): Promise<Listener> {
  const onRequest: http.RequestListener = async (request, response) => {
    const answer = await answerTo(respond, request).catch((error: unknown): Answer => {
      failed(error);
      return { status: 500, body: "internal error\n" };
    });
    sendAnswer(response, answer);
  };
  const server =
    tls === undefined
      ? http.createServer({ ...LIMITS, ...TIMEOUTS }, onRequest)
      : await createTlsServer(tls, TIMEOUTS, onRequest);
  server.maxConnections = MAX_CONNECTIONS;
  server.maxRequestsPerSocket = MAX_REQUESTS_PER_CONNECTION;
  return listenAt(server, address);
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
