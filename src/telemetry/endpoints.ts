import { hash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import http from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";
import type { KubernetesClient } from "../../providers/kubernetes/client";
import { type Answer, sendAnswer } from "../http/answer";
import { ConnectionLimit, clientOf, type RequestHandler } from "../http/connection-limit";
import { isLoopback } from "../http/loopback";
import { type Address, createTlsServer, hostPort, LIMITS, type Listener, listenAt } from "../http/server";
import type { ServedCertificate } from "../tls/served-certificate";
import type { Metrics } from "./metrics";
import { scrapeAccess, type Verdict } from "./scrape-access";

export interface EndpointOptions {
  /** 0 for any free port. */
  httpPort: number;
  httpHost: string;
  /** Protects the metrics, on this port. */
  metricsPort?: number;
  /** A folder with `tls.crt` and `tls.key`. */
  metricsCertificate?: string;
  client: Pick<KubernetesClient, "json">;
  metrics: Pick<Metrics, "registry">;
  /** Why the process is not ready, or no longer; `undefined` when it is. */
  ready: () => string | undefined;
  /** Pages below a path, served beside the metrics to users who may `get` that path; an answer is absent where there is no page. */
  console?: { path: string; answer: (request: IncomingMessage) => Promise<Answer | undefined> };
  logger: Logger;
}

export interface Endpoints {
  /** Where they listen, for the log: `http`, and `metrics` when they have a port of their own. */
  addresses: { http: string; metrics?: string };
  close(): Promise<void>;
}

/**
 * Serves probes to anyone, and metrics to those who may read them.
 *
 * @throws TerminalError `Misconfigured` for a certificate that cannot be used
 */
export async function startEndpoints(options: EndpointOptions): Promise<Endpoints> {
  const { httpHost: host, metricsPort } = options;
  const probes = await startProbes(options);
  const http = hostPort({ host, port: probes.port });
  if (metricsPort === undefined) return { addresses: { http }, close: probes.close };
  try {
    const metrics = await startProtectedMetrics(options, metricsPort);
    return {
      addresses: { http, metrics: hostPort({ host, port: metrics.port }) },
      close: async () => void (await Promise.all([probes.close(), metrics.close()])),
    };
  } catch (error) {
    await probes.close(); // it would keep the process alive
    throw error;
  }
}

/** Less than the time-out of the readiness probe. */
const START_WAIT_MS = 9_000;
const START_POLL_MS = 50;
/** So many requests wait for the start; others have the present answer. */
const MAX_START_WAITS = 16;
const OK: Answer = { status: 200, body: "ok" };
const NOT_FOUND: Answer = { status: 404, body: "not found\n" };
const REFUSALS: Record<Exclude<Verdict, "allowed">, Answer> = {
  unauthenticated: { status: 401, headers: { "www-authenticate": "Bearer" }, body: "unauthorized\n" },
  forbidden: { status: 403, body: "forbidden\n" },
  unknown: { status: 503, headers: { "retry-after": "5" }, body: "unavailable\n" },
};
/** A browser asks its user for a name and a password; the token is the latter. */
const ASK_FOR_TOKEN = { "www-authenticate": 'Basic realm="Kindstack: token as the password", charset="UTF-8"' };

/**
 * Serves `/healthz` and `/readyz` to anyone; on a port that is not reachable from outside also metrics and console,
 * unless these have a port of their own.
 */
function startProbes(options: EndpointOptions): Promise<Listener> {
  const { httpPort: port, httpHost: host, metricsPort, metrics, ready, console, logger } = options;
  let wasReady = false;
  const firstAnswer = startWaiter(ready);
  const isOpen = metricsPort === undefined && isLoopback(host);
  return listen({
    port,
    host,
    logger,
    async respond(request) {
      const path = pathOf(request);
      // A process that answers is healthy: a restart would not bring what it waits for.
      if (path === "/healthz") return OK;
      if (path === "/readyz") {
        const reason = wasReady ? ready() : await firstAnswer();
        wasReady ||= reason === undefined;
        if (reason === undefined) return OK;
        logger.debug({ probe: path, reason }, "probe failed"); // the reason is not for the client
        return { status: 503, body: "not ok" };
      }
      if (!isOpen || !isLocal(request.headers.host)) return NOT_FOUND;
      if (path === "/metrics") return scrape(metrics);
      return (await console?.answer(request)) || NOT_FOUND;
    },
  });
}

/** While the process starts, a probe waits for it in place of failing, which kubelet would report. */
function startWaiter(ready: () => string | undefined): () => Promise<string | undefined> {
  let waiting = 0;
  return async () => {
    const end = performance.now() + (waiting < MAX_START_WAITS ? START_WAIT_MS : 0);
    waiting++;
    try {
      for (; ; await delay(START_POLL_MS)) {
        const reason = ready();
        if (reason === undefined || performance.now() >= end) return reason;
      }
    } finally {
      waiting--;
    }
  };
}

/** Serves `/metrics` and the console over TLS, each to users who may `get` its path. */
async function startProtectedMetrics(options: EndpointOptions, port: number): Promise<Listener> {
  const { httpHost: host, metricsCertificate, client, metrics, console } = options;
  const logger = options.logger.child({ component: "metrics" });
  // Loaded here: the certificate library takes time and memory, and only this needs it.
  const { certificateFiles, ownCertificate } = await import("../tls/served-certificate.js");
  const tls = await (metricsCertificate === undefined
    ? ownCertificate(logger)
    : certificateFiles("--metrics-certificate", metricsCertificate, logger));
  const verdictOn = scrapeAccess(client, logger);
  return listen({
    port,
    host,
    tls,
    logger,
    async respond(request, recognize) {
      const path = pathOf(request);
      const { authorization } = request.headers;
      const pages = console !== undefined && `${path}/`.startsWith(`${console.path}/`) ? console : undefined;
      // Before anything else, so that the answer does not tell which paths exist.
      const verdict = await verdictOn(pages?.path ?? "/metrics", authorization, clientOf(request));
      if (verdict === "unauthenticated" && pages) return { ...REFUSALS.unauthenticated, headers: ASK_FOR_TOKEN };
      if (verdict !== "allowed") return REFUSALS[verdict];
      recognize(hash("sha256", authorization ?? "", "base64"));
      if (pages) return (await pages.answer(request)) ?? NOT_FOUND;
      return path === "/metrics" ? scrape(metrics) : NOT_FOUND;
    },
  });
}

async function scrape({ registry }: Pick<Metrics, "registry">): Promise<Answer> {
  return { status: 200, contentType: registry.contentType, body: await registry.metrics() };
}

function pathOf({ url = "" }: IncomingMessage): string {
  return url.split("?", 1)[0] ?? "";
}

/** Whether the request names this machine: another site's name may resolve to it, for its scripts to read pages. */
function isLocal(host = ""): boolean {
  return /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])(:\d+)?$/.test(host);
}

interface ListenerOptions extends Address {
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
