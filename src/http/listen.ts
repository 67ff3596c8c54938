import type http from "node:http";
import type https from "node:https";
import type { AddressInfo } from "node:net";

/**
 * Starts to serve.
 *
 * @param at the port, 0 for any free one, and the address
 * @returns the port
 * @throws Error when the address is in use, or is not this machine's
 */
export async function listenAt(
  server: http.Server | https.Server,
  { port, host }: { port: number; host: string },
): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, resolve);
  });
  return (server.address() as AddressInfo).port;
}

/** Ends a server and all of its connections, whatever they carry. */
export function closeAtOnce(server: http.Server | https.Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
