import http from "node:http";
import type { Logger } from "pino";
import { type Answer, sendAnswer } from "../http/answer";
import { ConnectionLimit, type RequestHandler } from "../http/connection-limit";
import { type Address, createTlsServer, LIMITS, type Listener, listenAt } from "../http/server";
import type { ServedCertificate } from "../tls/served-certificate";

export interface ListenerOptions extends Address {
  /** With a certificate, the server accepts TLS only. */
  tls?: ServedCertificate;
  /**
   * Answers a request without a body. What it throws is logged only.
   *
   * @param recognize to be called with who sends it, once that is known
   */
  respond(request: http.IncomingMessage, recognize: (identity: string) => void): Promise<Answer>;
  logger: Pick<Logger, "warn">;
}

const TIMEOUTS = { requestTimeout: 10_000, keepAliveTimeout: 60_000 };
const MAX_CONNECTIONS = 100;
const MAX_REQUESTS_PER_CONNECTION = 1_000;

/** Serves short answers to `GET` and `HEAD`, within limits that no client can exceed. */
export async function listen(options: ListenerOptions): Promise<Listener> {
  const { tls, respond } = options;

  async function answerTo(request: http.IncomingMessage): Promise<Answer> {
    const { method, headers } = request;
    if (method !== "GET" && method !== "HEAD") {
      return { status: 405, headers: { allow: "GET, HEAD", connection: "close" }, body: "method not allowed\n" };
    }
    const hasBody = headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
    if (hasBody) return { status: 413, headers: { connection: "close" }, body: "a body is not accepted\n" };
    return respond(request, (identity) => limit.recognize(request.socket, identity));
  }

  const onRequest: RequestHandler = async (request, response) => {
    const answer = await answerTo(request).catch((error: unknown): Answer => {
      options.logger.warn({ err: error }, "failed to answer a request");
      return { status: 500, body: "internal error\n" };
    });
    sendAnswer(response, answer);
  };
  const server =
    tls === undefined ? http.createServer({ ...LIMITS, ...TIMEOUTS }) : await createTlsServer(tls, TIMEOUTS);
  const limit = new ConnectionLimit(server, { max: MAX_CONNECTIONS }, onRequest);
  server.maxRequestsPerSocket = MAX_REQUESTS_PER_CONNECTION;
  const { port, close } = await listenAt(limit, options);
  return {
    port,
    close() {
      tls?.close();
      return close();
    },
  };
}
