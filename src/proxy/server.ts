import { constants } from "node:crypto";
import { type IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { buffer } from "node:stream/consumers";
import type { Logger } from "pino";
import { sendAnswer } from "../http/answer";
import { authenticate } from "../http/authenticate";
import { ConnectionLimit } from "../http/connection-limit";
import { type Identity, impersonationHeaders } from "../http/identity";
import { Refusal } from "../http/refusal";
import { type Address, createTlsServer, listenAt } from "../http/server";
import type { TokenReviews } from "../http/token-reviews";
import type { Polled } from "../tls/poll";
import type { SecureContext } from "../tls/served-certificate";
import { hasBody, requestHeaders } from "./headers";
import type { ProxyMetrics } from "./metrics";
import { attributesIn, NewNamespaces } from "./new-namespace";
import type { Owners } from "./owners";
import { answerOf, type EndAnswer, join, refuse, relay } from "./relay";
import { answerSelfReview, isSelfReview } from "./self-review";
import type { Upstream } from "./upstream";
import { expired, isNarrowed, isWatch, type Passage, passageOf, type ViewOptions } from "./view";

/** The certificate of the listener, and the CA of users' certificates; all as PEM. */
export interface ListenerCertificates extends SecureContext {
  /** The CAs of users' certificates. If empty, users have tokens only; `undefined` would mean all public CAs. */
  ca: string | [];
}

export interface ProxyServerOptions extends ViewOptions, Address {
  certificates: Polled<ListenerCertificates>;
  reviews: TokenReviews;
  owners: Owners;
  upstream: Upstream;
  refusedGroups: readonly string[];
  maxConnections: number;
  metrics: ProxyMetrics;
  logger: Logger;
}

const SERVER_OPTIONS = {
  requestCert: true,
  rejectUnauthorized: false, // users without a certificate may have a token
  secureOptions: constants.SSL_OP_NO_TICKET, // no session is resumed: a client certificate is verified for each connection
  keepAlive: true,
  noDelay: true,
  headersTimeout: 10_000,
  /** For all of a request, its body included; an answer may take as long as it likes. */
  requestTimeout: 300_000,
  keepAliveTimeout: 120_000,
  /** How often the two time-outs are looked after. */
  connectionsCheckingInterval: 5_000,
  maxHeaderSize: 65_536,
  handshakeTimeout: 10_000,
} as const;

/** Longer bodies are passed on as they arrive. */
const MAX_REPEATED_BODY = 262_144;

/** How far a request has come; written to the access log when it is over. */
interface AccessRecord {
  user?: string;
  view?: Passage["view"];
  upgraded?: boolean;
}

/** Starts the listener. @throws when the port is taken */
export async function startProxyServer(options: ProxyServerOptions) {
  const { logger, metrics, certificates } = options;
  const newNamespaces = new NewNamespaces(options);
  let stopping = false;
  /** With which CA a connection's certificate was verified. */
  const verifiedWith = new WeakMap<Socket, ListenerCertificates["ca"]>();
  const isOutdated = (socket: Socket) => verifiedWith.get(socket) !== certificates.current.ca;
  const watches = new Set<EndAnswer>();

  const server = await createTlsServer(certificates, SERVER_OPTIONS);
  const limits = { max: options.maxConnections, dropped: () => metrics.droppedConnections.inc() };
  const limit = new ConnectionLimit(server, limits, (request, response) => {
    response.once("finish", () => {
      if (stopping || isOutdated(request.socket)) request.socket.destroySoon();
    });
    return serve(request, response);
  });
  server.on("secureConnection", (socket) => {
    verifiedWith.set(socket, certificates.current.ca);
    metrics.connections.inc();
    socket.once("close", () => metrics.connections.dec());
  });
  server.on("upgrade", (request: IncomingMessage, _socket, head: Buffer) => {
    const { socket } = request;
    socket.on("error", () => {}); // "close" follows
    // Until the API server agrees to the other protocol, an upgrade is answered like any other request.
    const response = new ServerResponse(request);
    response.shouldKeepAlive = false;
    try {
      response.assignSocket(socket);
    } catch {
      socket.destroy(); // the client has not waited for the answer to its last request
      return;
    }
    response.once("finish", () => socket.destroySoon());
    limit.serve(response, () => serve(request, response, head));
  });

  let trusted = certificates.current.ca;
  await certificates.follow(({ ca }) => {
    if (ca !== trusted) server.closeIdleConnections();
    trusted = ca;
  });

  /** @param upgradeHead for an upgrade request: the bytes that followed it */
  async function serve(request: IncomingMessage, response: ServerResponse, upgradeHead?: Buffer): Promise<void> {
    const startedAt = performance.now();
    const target = request.url ?? "";
    const type = upgradeHead ? "upgrade" : isWatch(target) ? "watch" : "request";
    const progress: AccessRecord = {};
    response.once("close", () => {
      const { user, view = "none" } = progress;
      const code = progress.upgraded ? 101 : response.headersSent ? response.statusCode : 499;
      const seconds = (performance.now() - startedAt) / 1000;
      metrics.requests.inc({ view, type, code });
      if (type === "request") metrics.duration.observe({ view }, seconds);
      const path = target.split("?")[0]; // a query may hold private data
      logger.info({ method: request.method, path, type, user, view, code, seconds }, "answered");
    });
    try {
      await passOn(request, response, progress, upgradeHead);
    } catch (error) {
      if (!(error instanceof Refusal || response.destroyed)) logger.error({ err: error }, "request failed");
      if (response.headersSent) response.destroy();
      else refuse(response, error);
    }
  }

  async function passOn(
    request: IncomingMessage,
    response: ServerResponse,
    progress: AccessRecord,
    upgradeHead: Buffer | undefined,
  ): Promise<void> {
    if (isOutdated(request.socket)) throw new Refusal(401, "Unauthorized", "Unauthorized");
    const identity = await authenticate(request, options.reviews);
    progress.user = identity.username;
    limit.recognize(request.socket, identity.username);
    refuseGroups(identity, options.refusedGroups);
    const headers = requestHeaders(request.headersDistinct, request.socket.remoteAddress);
    const { method = "GET", url = "" } = request;
    if (upgradeHead) {
      if (hasBody(request.headersDistinct)) {
        throw new Refusal(400, "BadRequest", "an upgrade request must not have a body");
      }
      headers.connection = "Upgrade";
      headers.upgrade = request.headers.upgrade ?? "";
    }
    if (!upgradeHead && isSelfReview(request) && isNarrowed(options, identity)) {
      progress.view = "user";
      delete headers["accept-encoding"];
      const asUser = { ...headers, ...impersonationHeaders(identity), accept: "application/json" };
      await answerSelfReview(request, response, await options.upstream.request(method, url, asUser));
      return;
    }
    const passage: Passage = upgradeHead
      ? { view: "user", path: url }
      : await passageOf(options, identity, method, url);
    progress.view = passage.view;
    if (passage.view === "user") Object.assign(headers, impersonationHeaders(identity));

    const attributes =
      !upgradeHead && passage.view === "user" && isNarrowed(options, identity) ? attributesIn(method, url) : undefined;
    const body = attributes && (await shortBody(request));
    const ask = async () =>
      answerOf(await options.upstream.request(method, passage.path, headers), request, response, body);
    let answer = await ask();
    if (attributes !== undefined && answer.message.statusCode === 403 && (body ?? !hasBody(request.headersDistinct))) {
      const isAllowed = await newNamespaces.becomesAllowed(identity, attributes).catch((error: unknown) => {
        if (error instanceof Refusal) throw error;
        logger.warn({ err: error }, "failed to look for a user's rights in a namespace");
        return false;
      });
      if (response.destroyed) return void answer.message.destroy();
      if (isAllowed) answer.message.resume(); // the connection is used again
      if (typeof isAllowed === "object") return sendAnswer(response, { status: 200, body: isAllowed });
      if (isAllowed) answer = await ask();
    }
    if (answer.type === "upgrade") {
      if (!upgradeHead) throw new Error("the API server changed to a protocol that the client did not request");
      progress.upgraded = true;
      join(request.socket, upgradeHead, answer);
      return;
    }
    const end = relay(answer.message, response);
    if (!isWatch(url)) return;
    watches.add(end);
    response.once("close", () => watches.delete(end));
    if (stopping) end();
    if (passage.view !== "own-namespaces") return;
    const unfollow = options.owners.follow(identity, passage.owned, () => {
      metrics.endedWatches.inc();
      end(expired());
    });
    response.once("close", unfollow);
  }

  const { port } = await listenAt(limit, options);
  return {
    port,
    /** Ends watches and takes no more connections; other requests may continue for `graceMs`. */
    async close(graceMs: number): Promise<void> {
      stopping = true;
      certificates.close();
      const closed = limit.close(graceMs);
      for (const end of watches) end();
      await closed;
    },
  };
}

/** A body that can be sent twice: the whole of a short one. */
async function shortBody(request: IncomingMessage): Promise<Buffer | undefined> {
  const length = Number(request.headers["content-length"] ?? Number.NaN);
  return length > 0 && length <= MAX_REPEATED_BODY ? await buffer(request) : undefined;
}

function refuseGroups({ groups }: Identity, refused: readonly string[]): void {
  const group = groups.find((name) => refused.includes(name));
  if (group === undefined) return;
  throw new Refusal(403, "Forbidden", `members of ${group} may not use this proxy; ask the API server directly`);
}
