import { once } from "node:events";
import type http from "node:http";
import https from "node:https";
import { type AddressInfo, isIPv6 } from "node:net";
import type { SecureContextOptions } from "node:tls";
import type { Polled } from "../tls/poll";
import { takeOver } from "./early-listener";

export interface Address {
  /** 0 for any free port. */
  port: number;
  host: string;
}

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

/**
 * Creates a TLS server within {@link LIMITS}, always with the current certificate.
 *
 * @param options override the limits
 */
export async function createTlsServer(
  certificate: Pick<Polled<SecureContextOptions>, "follow">,
  options: https.ServerOptions,
  onRequest: http.RequestListener,
): Promise<https.Server> {
  const own: https.ServerOptions = { ...LIMITS, minVersion: "TLSv1.2", ...options };
  const server = https.createServer(own, onRequest);
  await certificate.follow((context) => server.setSecureContext({ ...own, ...context }));
  return server;
}

/**
 * Starts to serve.
 *
 * @param graceMs how long requests may continue after `close`; connections without one end at once
 * @throws Error when the address is in use, or is not this machine's
 */
export async function listenAt(
  server: http.Server | https.Server,
  { port, host }: Address,
  graceMs = 0,
): Promise<Listener> {
  await bind(server, port, host).catch((error: NodeJS.ErrnoException) => {
    // A machine may have IPv6 switched off.
    if (host !== "::" || !NO_IPV6.includes(error.code ?? "")) throw error;
    return bind(server, port, "0.0.0.0");
  });
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        setTimeout(() => server.closeAllConnections(), graceMs).unref();
      }),
  };
}

const NO_IPV6 = ["EAFNOSUPPORT", "EADDRNOTAVAIL"];

async function bind(server: http.Server | https.Server, port: number, host: string): Promise<void> {
  if (takeOver(server, { port, host })) return;
  const listening = once(server, "listening"); // rejects with the server's first error
  server.listen(port, host);
  await listening;
}

/** As it stands in a URL. */
export function hostPort({ host, port }: Address): string {
  return `${isIPv6(host) ? `[${host}]` : host}:${port}`;
}
