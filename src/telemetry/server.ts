import http from "node:http";
import type { AddressInfo } from "node:net";
import { errorMessageOf } from "../../providers/errors";
import type { Metrics } from "./metrics";

export interface TelemetryServerOptions {
  /** 0 for any free port. */
  port: number;
  host: string;
  metrics: Pick<Metrics, "registry">;
  /** Why the process should be restarted; `undefined` when all is well. */
  healthy: () => string | undefined;
  /** Why the process does not do its work yet, or any more; `undefined` when it does. */
  ready: () => string | undefined;
}

export interface TelemetryServer {
  port: number;
  close(): Promise<void>;
}

interface Answer {
  status: number;
  contentType?: string;
  body: string;
}

/** Serves `/healthz` and `/readyz` (200 `ok`, or 503 and the reason) and `/metrics` in Prometheus' text format. */
export async function startTelemetryServer(options: TelemetryServerOptions): Promise<TelemetryServer> {
  const server = http.createServer(
    { requestTimeout: 10_000, headersTimeout: 5_000, keepAliveTimeout: 60_000 },
    (request, response) => void respond(options, request, response),
  );
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(options.port, options.host, resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function respond(
  options: TelemetryServerOptions,
  request: http.IncomingMessage,
  response: http.ServerResponse,
): Promise<void> {
  const {
    status,
    contentType = "text/plain; charset=utf-8",
    body,
  } = await answerTo(options, request).catch(
    (error: unknown): Answer => ({ status: 500, body: errorMessageOf(error) }),
  );
  if (status === 405) response.setHeader("allow", "GET, HEAD");
  response.writeHead(status, {
    "content-type": contentType,
    "content-length": Buffer.byteLength(body),
    "cache-control": "no-store",
  });
  response.end(request.method === "HEAD" ? undefined : body);
}

async function answerTo(options: TelemetryServerOptions, request: http.IncomingMessage): Promise<Answer> {
  if (request.method !== "GET" && request.method !== "HEAD") return { status: 405, body: "method not allowed\n" };
  switch (request.url?.split("?")[0]) {
    case "/healthz":
      return probed(options.healthy());
    case "/readyz":
      return probed(options.ready());
    case "/metrics": {
      const { registry } = options.metrics;
      return { status: 200, contentType: registry.contentType, body: await registry.metrics() };
    }
    default:
      return { status: 404, body: "not found\n" };
  }
}

function probed(reason: string | undefined): Answer {
  return reason === undefined ? { status: 200, body: "ok" } : { status: 503, body: reason };
}
