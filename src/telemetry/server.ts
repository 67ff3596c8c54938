import type { IncomingMessage } from "node:http";
import type { Answer } from "../http/answer";
import type { Address, Listener } from "../http/server";
import type { ServedCertificate } from "./certificate";
import { CONSOLE_PATH } from "./console-paths";
import { listen } from "./listener";
import type { Metrics } from "./metrics";
import type { Verdict } from "./scrape-access";

interface Log {
  debug(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

export interface ProbeServerOptions extends Address {
  /** Why the process should be restarted; `undefined` when all is well. */
  healthy: () => string | undefined;
  /** Why the process does not do its work yet, or any more; `undefined` when it does. */
  ready: () => string | undefined;
  /** Served to anybody on the same port; only for a port that is not reachable from outside. */
  openMetrics?: Pick<Metrics, "registry">;
  /** Served likewise. */
  console?: Console | undefined;
  log: Log;
}

/** Answers a request for one of its pages; `undefined` when it is for none. */
export type Console = (request: IncomingMessage) => Promise<Answer | undefined>;

export interface MetricsServerOptions extends Address {
  metrics: Pick<Metrics, "registry">;
  tls: ServedCertificate;
  /** Who may read them, by the `Authorization` header. */
  access: (authorization: string | undefined) => Promise<Verdict>;
  console?: { pages: Console; access: MetricsServerOptions["access"] } | undefined;
  log: Log;
}

const NOT_FOUND: Answer = { status: 404, body: "not found\n" };

/** Serves `/healthz` and `/readyz` to anybody: 200 `ok`, or 503; the reason is for the log, not for the client. */
export function startProbeServer({
  healthy,
  ready,
  openMetrics,
  console,
  log,
  ...address
}: ProbeServerOptions): Promise<Listener> {
  const probes = new Map([
    ["/healthz", healthy],
    ["/readyz", ready],
  ]);
  return listen({
    ...address,
    async respond(request) {
      const path = pathOf(request.url);
      if (path === "/metrics" && openMetrics !== undefined) return scrape(openMetrics);
      const probe = probes.get(path);
      if (probe === undefined) return (isLocal(request.headers.host) && (await console?.(request))) || NOT_FOUND;
      const reason = probe();
      if (reason === undefined) return { status: 200, body: "ok" };
      log.debug({ probe: path, reason }, "probe failed");
      return { status: 503, body: "not ok" };
    },
    failed: (error) => log.warn({ err: error }, "failed to answer a probe"),
  });
}

/** Serves `/metrics` in Prometheus' text format over TLS, to those whom the cluster lets `get` it. */
export function startMetricsServer({
  metrics,
  access,
  console,
  log,
  ...address
}: MetricsServerOptions): Promise<Listener> {
  return listen({
    ...address,
    async respond(request) {
      if (console !== undefined && isUnder(CONSOLE_PATH, pathOf(request.url))) {
        const verdict = await console.access(request.headers.authorization);
        return verdict === "allowed" ? ((await console.pages(request)) ?? NOT_FOUND) : askForToken(REFUSALS[verdict]);
      }
      // Before anything else, so that the answer does not tell which paths exist.
      const verdict = await access(request.headers.authorization);
      if (verdict !== "allowed") return REFUSALS[verdict];
      return pathOf(request.url) === "/metrics" ? scrape(metrics) : NOT_FOUND;
    },
    failed: (error) => log.warn({ err: error }, "failed to serve metrics"),
  });
}

const REFUSALS: Record<Exclude<Verdict, "allowed">, Answer> = {
  unauthenticated: { status: 401, headers: { "www-authenticate": "Bearer" }, body: "unauthorized\n" },
  forbidden: { status: 403, body: "forbidden\n" },
  unknown: { status: 503, headers: { "retry-after": "5" }, body: "unavailable\n" },
};

/** A browser asks its user for a name and a password; the token is the latter. */
function askForToken(refusal: Answer): Answer {
  if (refusal.status !== 401) return refusal;
  return {
    ...refusal,
    headers: { "www-authenticate": 'Basic realm="Kindstack: token as the password", charset="UTF-8"' },
  };
}

/** Whether a page of this machine's own was asked for: another site's name may resolve to it, and its scripts ask us then. */
function isLocal(host = ""): boolean {
  return /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])(:\d+)?$/.test(host);
}

function isUnder(path: string, asked: string): boolean {
  return asked === path || asked.startsWith(`${path}/`);
}

async function scrape({ registry }: Pick<Metrics, "registry">): Promise<Answer> {
  return { status: 200, contentType: registry.contentType, body: await registry.metrics() };
}

function pathOf(url = ""): string {
  return url.split("?", 1)[0] ?? "";
}
