import type { RequestOptions } from "node:https";
import { createSecureContext } from "node:tls";
import type { KubeConfig } from "@kubernetes/client-node";
import { Agent, type buildConnector, type Dispatcher, ProxyAgent } from "undici";
import { environmentProxy } from "../environment-proxy";
import { TerminalError } from "../errors";
import { inTime } from "../in-time";
import { impersonationHeaders } from "./kubeconfig";

/** How a request is sent, and what it says of who sends it. */
interface Access {
  dispatcher: Dispatcher;
  headers: Record<string, string | string[]>;
}

/** Tokens and certificates may be rotated: they are read again, files and all, when they are older than this. */
const FRESH_MS = 1_000;
/** A plugin that has said nothing by then is given up, and started again by the next request. */
const READ_TIMEOUT_MS = 30_000;
/** A new connection costs more than all the requests of a small object; the API server itself gives them 90 s. */
const IDLE_CONNECTION_MS = 60_000;

/** The credentials of a kubeconfig's current user, and connections that live as long as these agree. */
export class Login {
  readonly #config: KubeConfig;
  #agent: { credentials: string; dispatcher: Dispatcher } | undefined;
  #fresh: { access: Promise<Access>; until: number } | undefined;

  constructor(config: KubeConfig) {
    this.#config = config;
  }

  access(): Promise<Access> {
    if (this.#fresh !== undefined && performance.now() < this.#fresh.until) return this.#fresh.access;
    // A plugin that takes long, or hangs, is not started once more for each who waits.
    const late = () => new Error("nothing was told within 30 s");
    const fresh = { access: inTime(this.#read(), READ_TIMEOUT_MS, late), until: Number.POSITIVE_INFINITY };
    this.#fresh = fresh;
    fresh.access.then(
      () => {
        fresh.until = performance.now() + FRESH_MS;
      },
      () => {
        fresh.until = 0;
      },
    );
    return fresh.access;
  }

  async #read(): Promise<Access> {
    const options: RequestOptions = { headers: {} };
    await this.#config.applyToHTTPSOptions(options);
    const { ca, cert, key, servername, rejectUnauthorized = true } = options;
    const credentials = [ca, cert, key, rejectUnauthorized].map(String).join("\n");
    if (this.#agent?.credentials !== credentials) {
      void this.#agent?.dispatcher.close();
      const secureContext = createSecureContext({ ca, cert, key }); // made once: a burst opens many connections
      const connect = { secureContext, rejectUnauthorized, ...(servername !== undefined && { servername }) };
      this.#agent = { credentials, dispatcher: dispatcherOf(connect, this.#config) };
    }
    const headers: Access["headers"] = {
      ...(options.headers as Record<string, string>),
      ...impersonationHeaders(this.#config.getCurrentUser()),
    };
    if (options.auth) headers.authorization = `Basic ${Buffer.from(options.auth).toString("base64")}`;
    return { dispatcher: this.#agent.dispatcher, headers };
  }

  async close(): Promise<void> {
    await this.#agent?.dispatcher.destroy();
    this.#agent = undefined;
    this.#fresh = undefined;
  }
}

/**
 * HTTP/1.1, though the API server offers HTTP/2: with it, Node.js 24 may write frames without an end after a request was given
 * up in the moment of its answer, into memory and with no turn of the event loop.
 */
const CONNECTIONS = { allowH2: false, keepAliveTimeout: IDLE_CONNECTION_MS };

function dispatcherOf(connect: buildConnector.BuildOptions, config: KubeConfig): Dispatcher {
  const { proxyUrl, server } = config.getCurrentCluster() ?? {};
  if (proxyUrl && (!/^https?:/.test(proxyUrl) || !URL.canParse(proxyUrl))) {
    throw new TerminalError("Misconfigured", "the kubeconfig's proxy-url must begin with http:// or https://");
  }
  const uri = proxyUrl || (server && URL.canParse(server) ? environmentProxy(new URL(server)) : undefined);
  if (uri === undefined) return new Agent({ connect, ...CONNECTIONS });
  return new ProxyAgent({ uri, requestTls: connect, ...CONNECTIONS });
}
