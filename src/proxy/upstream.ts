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
  readonly #server: URL;
  readonly #agent = new https.Agent({ keepAlive: true, timeout: IDLE_TIMEOUT_MS });

  constructor(
    private readonly config: KubeConfig,
    server: string,
  ) {
    this.#server = new URL(server);
  }

  /**
   * Begins a request; the caller writes and ends its body, if any. It has no time-out: a watch may be silent.
   *
   * @param path with its query, as it came from the client
   */
  async request(method: string, path: string, headers: OutgoingHeaders): Promise<ClientRequest> {
    if (!path.startsWith("/")) throw new Refusal(400, "BadRequest", "the request's target must be a path");
    const prefix = this.#server.pathname.replace(/\/$/, "");
    if (prefix !== "" && leavesItsPrefix(path)) {
      throw new Refusal(400, "BadRequest", "the request's path must not have segments such as ..");
    }
    // Credentials may be rotated, so they are asked for at every request; the agent keeps their connections apart.
    const credentials: https.RequestOptions = { headers: {} };
    await this.config.applyToHTTPSOptions(credentials);
    // No other header of the kubeconfig's: one that impersonates would take the place of the user's own.
    const { Authorization: authorization } = credentials.headers as Record<string, string>;
    const request = https.request(this.#server, {
      ...credentials,
      agent: this.#agent,
      method,
      path: prefix + path,
      headers: { ...headers, host: this.#server.host, ...(authorization !== undefined && { authorization }) },
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
 * Whether a path, decoded and shortened by a server, could lead out of the prefix: a segment `..`, in any encoding and
 * with any slash.
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
  return true; // no honest client encodes that often
}
