import type { ClientRequest } from "node:http";
import https from "node:https";
import type { KubeConfig } from "@kubernetes/client-node";
import { Refusal } from "../http/refusal";
import type { OutgoingHeaders } from "./headers";

const CONNECT_TIMEOUT_MS = 10_000;
/** Less than the API server keeps a connection that is not used, so that none is closed under a request. */
const IDLE_TIMEOUT_MS = 30_000;

/** The API server, as the proxy reaches it: with the credentials of its kubeconfig or of its Pod. */
export class Upstream {
  readonly #config: KubeConfig;
  readonly #agent = new https.Agent({ keepAlive: true, timeout: IDLE_TIMEOUT_MS });

  constructor(config: KubeConfig) {
    this.#config = config;
  }

  /**
   * Begins a request; its body, if any, is the caller's to write and to end. No time-out ends it: a watch may be silent.
   *
   * @param path with its query, as it came from the client
   * @throws Refusal 400 for a path that is none
   */
  async request(method: string, path: string, headers: OutgoingHeaders): Promise<ClientRequest> {
    if (!path.startsWith("/")) throw new Refusal(400, "BadRequest", "the request's target must be a path");
    const server = this.#config.getCurrentCluster()?.server;
    if (server === undefined) throw new Error("the kubeconfig names no current cluster");
    const url = new URL(server);
    const prefix = url.pathname.replace(/\/$/, "");
    if (prefix !== "" && leavesItsPrefix(path)) {
      throw new Refusal(400, "BadRequest", "the request's path must not have segments such as ..");
    }
    // Credentials may be rotated, so they are asked for at every request; the agent keeps their connections apart.
    const options: https.RequestOptions = { headers: {} };
    await this.#config.applyToHTTPSOptions(options);
    const own = options.headers as Record<string, string>;
    const authorization = options.auth ? `Basic ${Buffer.from(options.auth).toString("base64")}` : own.Authorization;
    const request = https.request({
      host: url.hostname.replace(/^\[(.*)\]$/, "$1"),
      port: url.port || 443,
      path: prefix + path,
      method,
      headers: { ...headers, host: url.host, ...(authorization !== undefined && { authorization }) },
      agent: this.#agent,
      ca: options.ca,
      cert: options.cert,
      key: options.key,
      ...(options.servername !== undefined && { servername: options.servername }),
      ...(options.rejectUnauthorized !== undefined && { rejectUnauthorized: options.rejectUnauthorized }),
    });
    request.once("socket", (socket) => {
      if (!socket.connecting) return;
      const timer = setTimeout(() => request.destroy(new Error("connecting took too long")), CONNECT_TIMEOUT_MS);
      for (const event of ["secureConnect", "close"]) socket.once(event, () => clearTimeout(timer));
    });
    return request;
  }

  close(): void {
    this.#agent.destroy();
  }
}

/**
 * Whether a server that decodes and shortens paths could read this one as leading out of what it is appended to: a
 * segment `..`, however it is encoded and with whatever slash.
 */
function leavesItsPrefix(target: string): boolean {
  let path = target.split(/[?#]/)[0] ?? "";
  for (let round = 0; round < 4; round++) {
    if (path.split(/[/\\]/).some((segment) => /^\.\.?(;.*)?$/.test(segment))) return true;
    const decoded = path.replace(/%(2e|2f|5c|25|3b)/gi, (_, code: string) =>
      String.fromCharCode(Number.parseInt(code, 16)),
    );
    if (decoded === path) return false;
    path = decoded;
  }
  return true; // encoded so often, nothing honest is
}
