import { constants } from "node:crypto";
import { type IncomingMessage, ServerResponse } from "node:http";
import https from "node:https";
import type { Duplex } from "node:stream";
import type { TLSSocket } from "node:tls";
import type { Logger } from "pino";
import { errorMessageOf } from "../../providers/errors";
import { ConnectionLimit } from "../http/connection-limit";

import { Refusal } from "../http/refusal";
import { listenAt } from "../http/server";
import type { Authenticator } from "./authenticate";
import type { ListenerCertificates } from "./certificates";
import { type HeaderLines, hasBody, requestHeaders } from "./headers";
import { type Identity, impersonationHeaders } from "./identity";
import type { ProxyMetrics } from "./metrics";
import type { Owners } from "./owners";
import { refuse } from "./refusal";
import { answerOf, join, type Relay, relay } from "./relay";
import type { Upstream } from "./upstream";
import { expired, isWatch, type Passage, passageOf, type ViewOptions } from "./view";

export interface ProxyServerOptions {
  /** 0 for any free port. */
  port: number;
  host: string;
  /** Asked now, and again and again for what was renewed. */
  certificates: () => Promise<ListenerCertificates>;
  reloadMs?: number;
  authenticator: Authenticator;
  owners: Owners;
  label: ViewOptions["label"];
  client: ViewOptions["client"];
  upstream: Upstream;
  userGroups: readonly string[];
  /** Members of these groups are refused. */
  refusedGroups: readonly string[];
  maxConnections: number;
  metrics: ProxyMetrics;
  logger: Logger;
}

export interface ProxyServer {
  readonly port: number;
  /** Open connections of clients. */
  readonly connections: number;
  /** Ends watches and takes no more connections; other requests may continue for `graceMs`. */
  close(graceMs: number): Promise<void>;
}

const LIMITS = {
  headersTimeout: 10_000,
  /** For all of a request, its body included; an answer may take as long as it likes. */
  requestTimeout: 300_000,
  keepAliveTimeout: 120_000,
  /** How often the two time-outs are looked after. */
  connectionsCheckingInterval: 5_000,
  maxHeaderSize: 65_536,
  handshakeTimeout: 10_000,
} as const;
const RELOAD_MS = 30_000;

/** How far a request has come; written to the access log when it is over. */
interface AccessRecord {
  user?: string;
  view?: Passage["view"];
  upgraded?: boolean;
}

/** Starts the listener. @throws when there is no usable certificate, or the port is taken */
export async function startProxyServer(options: ProxyServerOptions): Promise<ProxyServer> {
  const { logger, metrics } = options;
  let current = await options.certificates();
  let stopping = false;
  /** Connections whose certificate was verified with a CA that is no longer the one. */
  const outdated = new WeakSet<TLSSocket>();
  const secured = new Set<TLSSocket>();
  const upgraded = new Set<Duplex>();
  const watches = new Set<Relay>();

  const server = https.createServer({
    ...LIMITS,
    ...secureContext(current),
    requestCert: true,
    rejectUnauthorized: false, // who has no certificate may have a token
    keepAlive: true,
    noDelay: true,
  });
  const limit = new ConnectionLimit(server, options.maxConnections, () => metrics.droppedConnections.inc());
  server.on("secureConnection", (socket) => {
    secured.add(socket);
    socket.once("close", () => secured.delete(socket));
  });
  server.on("request", (request, response) => {
    response.once("finish", () => {
      if (stopping || outdated.has(request.socket as TLSSocket)) request.socket.destroySoon();
    });
    void serve(request, response);
  });
  server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    upgraded.add(socket);
    socket.once("close", () => upgraded.delete(socket));
    socket.on("error", () => {}); // "close" follows
    // Until the API server agrees to the other protocol, this is a request that is answered like any other.
    const response = new ServerResponse(request);
    response.shouldKeepAlive = false;
    response.assignSocket(socket as TLSSocket);
    response.once("finish", () => (socket as TLSSocket).destroySoon());
    void serve(request, response, { socket, head });
  });

  const reload = async () => {
    const latest = await options.certificates();
    if (JSON.stringify(latest) === JSON.stringify(current)) return;
    server.setSecureContext(secureContext(latest));
    if (latest.clientCa !== current.clientCa) {
      for (const socket of secured) outdated.add(socket);
      server.closeIdleConnections();
    }
    current = latest;
    logger.info("certificates were reloaded");
  };
  const reloading = setInterval(() => {
    reload().catch((error: unknown) => logger.warn({ reason: errorMessageOf(error) }, "failed to reload certificates"));
  }, options.reloadMs ?? RELOAD_MS);

  async function serve(
    request: IncomingMessage,
    response: ServerResponse,
    upgrade?: { socket: Duplex; head: Buffer },
  ): Promise<void> {
    const startedAt = performance.now();
    const target = request.url ?? "";
    const type = upgrade ? "upgrade" : isWatch(target) ? "watch" : "request";
    const progress: AccessRecord = {};
    (upgrade?.socket ?? response).once("close", () => {
      const { user, view = "none" } = progress;
      const code = progress.upgraded ? 101 : response.headersSent ? response.statusCode : 499;
      const seconds = (performance.now() - startedAt) / 1000;
      metrics.requests.inc({ view, type, code });
      if (type === "request") metrics.duration.observe({ view }, seconds);
      const path = target.split("?")[0]; // a query may hold private data
      logger.info({ method: request.method, path, type, user, view, code, seconds }, "answered");
    });
    try {
      await passOn(request, response, progress, upgrade);
    } catch (error) {
      if (!(error instanceof Refusal)) logger.error({ err: error }, "request failed");
      if (response.headersSent) response.destroy();
      else if (!(upgrade?.socket ?? response).destroyed) refuse(response, error);
    }
  }

  async function passOn(
    request: IncomingMessage,
    response: ServerResponse,
    progress: AccessRecord,
    upgrade: { socket: Duplex; head: Buffer } | undefined,
  ): Promise<void> {
    if (outdated.has(request.socket as TLSSocket)) throw new Refusal(401, "Unauthorized", "Unauthorized");
    const identity = await options.authenticator.authenticate(request);
    progress.user = identity.name;
    limit.recognize(request.socket);
    refuseGroups(identity, options.refusedGroups);
    const lines = request.headersDistinct as HeaderLines;
    const headers = requestHeaders(lines, request.socket.remoteAddress);
    const { method = "GET", url = "" } = request;
    if (upgrade) {
      if (hasBody(lines)) throw new Refusal(400, "BadRequest", "an upgrade request must not have a body");
      headers.connection = "Upgrade";
      headers.upgrade = request.headers.upgrade ?? "";
    }
    const passage: Passage = upgrade ? { view: "user", path: url } : await passageOf(options, identity, method, url);
    progress.view = passage.view;
    const isOwnWatch = passage.view === "own-namespaces" && passage.watches;
    if (passage.view === "user") Object.assign(headers, impersonationHeaders(identity));

    const upstream = await options.upstream.request(method, passage.path, headers);
    const client = upgrade?.socket ?? response;
    const abandon = () => upstream.destroy();
    client.once("close", abandon);
    if (client.destroyed) abandon(); // it went away meanwhile
    let ended: Refusal | undefined;
    let relayed: Relay | undefined;
    const unfollow = isOwnWatch
      ? options.owners.follow(identity, passage.owned, () => {
          metrics.endedWatches.inc();
          ended = expired();
          relayed?.end(ended);
        })
      : undefined;
    if (unfollow) client.once("close", unfollow);

    const answer = await answerOf(upstream, request);
    if (answer.type === "upgrade") {
      if (upgrade === undefined)
        throw new Error("the API server changed to a protocol that the client did not request");
      progress.upgraded = true;
      response.detachSocket(upgrade.socket as TLSSocket);
      join(upgrade.socket, upgrade.head, answer);
      return;
    }
    relayed = relay(answer.message, response);
    if (isWatch(url)) {
      const watch = relayed;
      watches.add(watch);
      client.once("close", () => watches.delete(watch));
      if (ended !== undefined || stopping) watch.end(ended);
    }
  }

  const { port } = await listenAt(server, options);
  return {
    port,
    get connections() {
      return secured.size;
    },
    async close(graceMs) {
      stopping = true;
      clearInterval(reloading);
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const watch of watches) watch.end();
      const cut = setTimeout(() => {
        server.closeAllConnections();
        for (const socket of upgraded) socket.destroy();
      }, graceMs);
      await closed;
      clearTimeout(cut);
    },
  };
}

/** No session is resumed: a client certificate is verified for each connection. */
function secureContext({ cert, key, clientCa }: ListenerCertificates) {
  return {
    cert,
    key,
    ca: clientCa === undefined ? [] : clientCa, // empty: trust no CA; undefined would mean all public CAs
    minVersion: "TLSv1.2" as const,
    secureOptions: constants.SSL_OP_NO_TICKET,
  };
}

function refuseGroups({ groups }: Identity, refused: readonly string[]): void {
  const group = groups.find((name) => refused.includes(name));
  if (group === undefined) return;
  throw new Refusal(403, "Forbidden", `members of ${group} may not use this proxy; ask the API server directly`);
}
