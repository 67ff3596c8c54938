import { once } from "node:events";
import fs from "node:fs";
import type http from "node:http";
import https from "node:https";
import type { AddressInfo } from "node:net";
import os from "node:os";
import path from "node:path";
import type { Duplex } from "node:stream";
import { setImmediate } from "node:timers/promises";
import type { TLSSocket } from "node:tls";
import { KubeConfig } from "@kubernetes/client-node";
import type { CertifiedKey } from "../../src/tls/certificate";
import type { TestAuthority } from "../tls/test-authority";

/** What a client asks with. */
export interface Question {
  port: number;
  ca: string;
  /** A client certificate, or the token that an `authorization` header holds. */
  as?: CertifiedKey | string;
  method?: string;
  path?: string;
  headers?: http.OutgoingHttpHeaders;
  body?: string;
  agent?: https.Agent;
}

export interface Response {
  status: number;
  headers: http.IncomingHttpHeaders;
  body: string;
}

/** Begins a request. */
export function begin({
  port,
  ca,
  as,
  method = "GET",
  path = "/",
  headers,
  body,
  agent,
}: Question): http.ClientRequest {
  const request = https.request({
    host: "127.0.0.1",
    ...{ port, ca, method, path, agent: agent ?? false },
    headers: { ...headers, ...(typeof as === "string" && { authorization: `Bearer ${as}` }) },
    ...(typeof as === "object" && { cert: as.certificate, key: as.key }),
  });
  request.end(body);
  return request;
}

/** Asks, and reads the whole answer. @throws when it is cut off */
export async function ask(question: Question): Promise<Response> {
  const [message] = (await once(begin(question), "response")) as [http.IncomingMessage];
  return { status: message.statusCode ?? 0, headers: message.headers, body: await textOf(message) };
}

export async function textOf(message: NodeJS.ReadableStream): Promise<string> {
  let text = "";
  for await (const chunk of message) text += chunk;
  return text;
}

/** What a request was when it arrived at the API server. */
export interface Arrival {
  method: string;
  url: string;
  headers: NodeJS.Dict<string[]>;
  body: string;
}

type Handler = (request: http.IncomingMessage, response: http.ServerResponse) => void;

/**
 * What stands in for the API server where it has to do what a real one does not do when it is asked to: a connection
 * that breaks, a protocol that is changed, an answer that is cut off.
 */
export class FakeApiServer {
  readonly arrivals: Arrival[] = [];
  readonly connections = new Set<TLSSocket>();
  /** Tokens, and the users that they are of. */
  readonly tokens: Record<string, { username: string; groups?: string[] }> = {};
  tenants: object[] = [];
  /** Users that may do whatever is asked about. */
  allowed: string[] = [];
  /** Answers what is not asked by the proxy for itself. */
  handle: Handler = (_request, response) => response.end("{}");
  upgrade: (request: http.IncomingMessage, socket: Duplex, head: Buffer) => void = (_request, socket) =>
    socket.destroy();
  tenantEvents: http.ServerResponse | undefined;
  tokenReviews = 0;
  /** The most that were asked for at the same time. */
  mostTokenReviews = 0;
  /** What a token's review waits for. */
  beforeTokenReview: () => Promise<unknown> = () => setImmediate();
  #tokenReviewsInFlight = 0;
  readonly directory = fs.mkdtempSync(path.join(os.tmpdir(), "kindstack-proxy-"));
  #server!: https.Server;
  #authority!: TestAuthority;

  async start(authority: TestAuthority): Promise<KubeConfig> {
    const { certificate: cert, key } = await authority.server();
    this.#server = https.createServer(
      { cert, key, maxHeaderSize: 1 << 20 },
      (request, response) => void this.#answer(request, response),
    );
    this.#server.on("secureConnection", (socket) => {
      this.connections.add(socket);
      socket.once("close", () => this.connections.delete(socket));
    });
    this.#server.on("upgrade", (request, socket, head) => {
      const { method = "", url = "", headersDistinct: headers } = request;
      this.arrivals.push({ method, url, headers, body: "" });
      this.upgrade(request, socket, head);
    });
    await once(this.#server.listen(0, "127.0.0.1"), "listening");
    this.#authority = authority;
    return this.behind("");
  }

  /** The configuration of one whose API server is found below this path. */
  behind(prefix: string): KubeConfig {
    const { port } = this.#server.address() as AddressInfo;
    const config = new KubeConfig();
    config.loadFromOptions({
      clusters: [
        { name: "c", server: `https://127.0.0.1:${port}${prefix}`, caData: base64(this.#authority.own.certificate) },
      ],
      users: [{ name: "proxy", token: "token-of-the-proxy" }],
      contexts: [{ name: "c", cluster: "c", user: "proxy" }],
      currentContext: "c",
    });
    return config;
  }

  async stop(): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    for (const socket of this.connections) socket.destroy();
    fs.rmSync(this.directory, { recursive: true });
  }

  /** Writes a file of the proxy's. */
  file(name: string, text: string): string {
    const file = path.join(this.directory, name);
    fs.writeFileSync(file, text);
    return file;
  }

  async #answer(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const { method = "", url = "", headersDistinct: headers } = request;
    const { pathname, searchParams } = new URL(url, "https://x");
    if (pathname.endsWith("/apis/capsule.clastix.io/v1alpha1")) {
      response.end(JSON.stringify({ resources: [{ name: "tenants", kind: "Tenant", namespaced: false }] }));
      return;
    }
    if (pathname.endsWith("/tenants")) {
      if (searchParams.has("watch")) {
        this.tenantEvents = response;
        response.flushHeaders();
      } else {
        response.end(JSON.stringify({ metadata: { resourceVersion: "10" }, items: this.tenants }));
      }
      return;
    }
    const body = await textOf(request).catch(() => "cut off");
    if (pathname.endsWith("/tokenreviews")) {
      this.tokenReviews++;
      this.mostTokenReviews = Math.max(this.mostTokenReviews, ++this.#tokenReviewsInFlight);
      await this.beforeTokenReview();
      this.#tokenReviewsInFlight--;
      const user = this.tokens[JSON.parse(body).spec.token];
      response.end(JSON.stringify({ status: user ? { authenticated: true, user } : { authenticated: false } }));
      return;
    }
    if (pathname.endsWith("/subjectaccessreviews")) {
      response.end(JSON.stringify({ status: { allowed: this.allowed.includes(JSON.parse(body).spec.user) } }));
      return;
    }
    this.arrivals.push({ method, url, headers, body });
    this.handle(request, response);
  }
}

function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}
