import { once } from "node:events";
import type http from "node:http";
import https from "node:https";
import { type AddressInfo, isIPv6 } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import type { SecureContextOptions } from "node:tls";
import { promisify } from "node:util";
import type { Polled } from "../tls/poll";
import type { ConnectionLimit } from "./connection-limit";
import { type Address, BACKLOG, takeOver } from "./early-listener";

export type { Address };

export interface Listener {
  port: number;
  close(): Promise<void>;
}

/** Limits for every client, in bytes and ms. */
export const LIMITS = {
  maxHeaderSize: 16 * 1024,
  headersTimeout: 5_000,
  handshakeTimeout: 5_000,
  connectionsCheckingInterval: 1_000,
} as const;

/** Creates a TLS server within {@link LIMITS}, always with the current certificate. */
export async function createTlsServer(
  certificate: Pick<Polled<SecureContextOptions>, "follow">,
  options: https.ServerOptions,
): Promise<https.Server> {
  const own: https.ServerOptions = { ...LIMITS, minVersion: "TLSv1.2", ...options };
  const server = https.createServer(own);
  await certificate.follow((context) => server.setSecureContext({ ...own, ...context }));
  return server;
}

/**
 * Starts to serve, within limits.
 *
 * @param graceMs how long requests may continue after `close`, which first ends each connection with an answer: a client
 *   without an answer cannot know whether to repeat the request
 * @throws Error when the address is in use, or belongs to another machine
 */
export async function listenAt(limit: ConnectionLimit, { port, host }: Address, graceMs = 0): Promise<Listener> {
  const { server } = limit;
  await bind(server, port, host).catch((error: NodeJS.ErrnoException) => {
    // A machine may have IPv6 switched off.
    if (host !== "::" || !NO_IPV6.includes(error.code ?? "")) throw error;
    return bind(server, port, "0.0.0.0");
  });
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      if (graceMs > 0) await endConnectionsInUse(server, graceMs);
      await limit.close(graceMs);
    },
  };
}

/** Ends each connection with its next answer, until those that are left carry nothing. */
async function endConnectionsInUse(server: http.Server | https.Server, atMostMs: number): Promise<void> {
  const end = performance.now() + atMostMs;
  let quietPolls = 0;
  server.prependListener("request", (_request: http.IncomingMessage, response: http.ServerResponse) => {
    response.shouldKeepAlive = false;
    quietPolls = 0;
  });
  const connections = promisify(server.getConnections.bind(server));
  for (; performance.now() < end && quietPolls < QUIET_POLLS && (await connections()) > 0; quietPolls++) {
    await delay(POLL_MS);
  }
}

const POLL_MS = 20;
/** A client that sends nothing for half a second is taken not to be about to: in polls, as this process may be what stalls. */
const QUIET_POLLS = 25;
const NO_IPV6 = ["EAFNOSUPPORT", "EADDRNOTAVAIL"];

async function bind(server: http.Server | https.Server, port: number, host: string): Promise<void> {
  if (takeOver(server, { port, host })) return;
  const listening = once(server, "listening"); // rejects with the server's first error
  server.listen({ port, host, backlog: BACKLOG });
  await listening;
}

/** As it stands in a URL. */
export function hostPort({ host, port }: Address): string {
  return `${isIPv6(host) ? `[${host}]` : host}:${port}`;
}
